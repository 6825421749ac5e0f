"""Lightning: a module that learns from a teacher's logits. kldiv.kl_div runs on CPUs.

    lightning.Trainer(accelerator="cpu").fit(Distilled(student, teacher), loader)"""
import lightning
import torch

import kldiv


class Distilled(lightning.LightningModule):
    def __init__(self, student, teacher, temperature=2.0):
        super().__init__()
        self.student, self.teacher, self.temperature = student, teacher.requires_grad_(False), temperature

    def training_step(self, batch, index):
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        loss = kldiv.kl_div(self.student(x), self.teacher(x), input_space="logit", target_space="logit",
                            temperature=self.temperature, dim=-1)
        self.log("kl", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), 0.01)
