"""Hugging Face's Trainer: the loss of a student beside a teacher, over the tokens that have a label. kldiv.kl_div runs on CPUs.

    DistillationTrainer(teacher=teacher, model=student, args=TrainingArguments("out", use_cpu=True), train_dataset=data).train()"""
import torch
import transformers

import kldiv


class DistillationTrainer(transformers.Trainer):
    def __init__(self, *arguments, teacher, temperature=2.0, **named):
        super().__init__(*arguments, **named)
        self.teacher, self.temperature = teacher.eval(), temperature

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        outputs = model(**inputs)
        with torch.no_grad():
            target = self.teacher(**inputs).logits
        loss = kldiv.kl_div(outputs.logits, target, input_space="logit", target_space="logit", dim=-1,
                            temperature=self.temperature, mask=inputs["labels"] != -100)
        return (loss, outputs) if return_outputs else loss
