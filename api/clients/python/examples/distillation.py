"""Distillation with PyTorch: the student learns from a teacher's logits, by any divergence.

Without an argument the loss is computed in this process and loss.backward() works as with F.kl_div, but logits are never
turned into tensors of probabilities. With the URL of a service the loss and its gradient are computed there, and the
gradient continues into the student here.

    python3 distillation.py [--divergence=reverse|js|skew] [http://HOST:8080]"""
import argparse

import torch

import kldiv

OPTIONS = {"input_space": "logit", "target_space": "logit", "temperature": 2.0, "scale": "temperature_squared", "dim": -1}


def train(client=None, divergence="forward", steps=200):
    torch.manual_seed(0)
    options = {**OPTIONS, "divergence": divergence}
    teacher, student = torch.nn.Linear(16, 32), torch.nn.Linear(16, 32)
    optimizer = torch.optim.Adam(student.parameters(), 0.05)
    losses = []
    for _ in range(steps):
        batch = torch.randn(64, 16)
        with torch.no_grad():
            targets = teacher(batch)
        logits = student(batch)
        optimizer.zero_grad()
        if client is None:
            loss = kldiv.kl_div(logits, targets, **options)
            loss.backward()
        else:
            loss, grads = client.value_and_grad(logits, targets, **options)
            logits.backward(grads["input"])
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--divergence", default="forward")
    parser.add_argument("url", nargs="?")
    arguments = parser.parse_args()
    losses = train(kldiv.Client(arguments.url) if arguments.url else None, arguments.divergence)
    print(f"{losses[0]:.4f} nats a row at first, {losses[-1]:.6f} at last")
