"""Distillation from a teacher of which the k likeliest classes are stored: on scikit-learn's digits, in some seconds.

The teacher runs once. Of each image its k likeliest classes are kept, as bytes and log-probabilities of half precision, and
the student learns from these alone, without labels. For a vocabulary of 128,000 words the program is the same, with indices of
32 bits: of k = 64 they take 384 bytes a word rather than 256,000.

    python3 topk_distillation.py [--k=3] [--tail=bin|drop|ignore]"""
import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import kldiv

TEMPERATURE = 3.0


def images():
    """Of training and of a test, and their digits."""
    pixels, digits = load_digits(return_X_y=True)
    return train_test_split((pixels / 16).astype("float32"), digits, test_size=0.3, random_state=0)


def store(teacher, x, k):
    """The k likeliest classes of each row, and their log-probabilities at the temperature of the student's training."""
    log_p = torch.tensor(teacher.predict_log_proba(x) / TEMPERATURE).log_softmax(-1)
    top = log_p.topk(k)
    return {"indices": top.indices.numpy().astype("uint8"), "values": top.values.numpy().astype("float16")}


def train(x, stored, tail="bin", epochs=60):
    """A student of 16 hidden units."""
    torch.manual_seed(0)
    student = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
    criterion = kldiv.SparseKLDivLoss(tail=tail, input_space="logit", target_space="log_prob", temperature=TEMPERATURE,
                                      scale="temperature_squared")
    optimizer = torch.optim.Adam(student.parameters(), 0.01)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            logits, rows = student(torch.from_numpy(x)[rows]), rows.numpy()
            criterion(logits, stored["indices"][rows], stored["values"][rows]).backward()
            optimizer.step()
    return student


def accuracy(student, x, digits):
    with torch.no_grad():
        return float((student(torch.from_numpy(x)).argmax(-1).numpy() == digits).mean())


def main(k=3, tail="bin"):
    x, x_test, digits, digits_test = images()
    teacher = MLPClassifier((256,), learning_rate_init=0.01, tol=1e-3, random_state=0).fit(x, digits)
    stored = store(teacher, x, k)
    # The labels alone, as a teacher that is certain.
    certain = {"indices": digits[:, None].astype("uint8"), "values": np.zeros((len(x), 1), "float16")}
    found = [accuracy(train(x, each, tail), x_test, digits_test) for each in (stored, certain)]
    size = sum(array.nbytes for array in stored.values())
    print(f"teacher, 256 hidden units: {teacher.score(x_test, digits_test):.3f} of the test's digits are right")
    print(f"stored: {k} of 10 classes of {len(x)} images, {size:,} bytes; all probabilities as float32 are {x.shape[0] * 40:,}")
    print(f"student, 16 hidden units: {found[0]:.3f}; by labels alone {found[1]:.3f}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--tail", default="bin")
    main(**vars(parser.parse_args()))
