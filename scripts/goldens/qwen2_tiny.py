#!/usr/bin/env python3
"""Make the qwen2-tiny golden: a Qwen2ForCausalLM with random weights, its input and its logits.

    pip install torch transformers safetensors
    python scripts/goldens/qwen2_tiny.py crates/kovar-text/tests/data/qwen2-tiny

float32 on the CPU. The biases, which transformers starts at zero, are random too.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import Qwen2Config, Qwen2ForCausalLM

folder = Path(sys.argv[1])
torch.manual_seed(2)
config = Qwen2Config(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    tie_word_embeddings=True,
)
model = Qwen2ForCausalLM(config).float().eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):
            parameter.normal_(std=0.2)
    ids = torch.randint(0, 256, (1, 48))
    logits = model(ids).logits
model.save_pretrained(folder)
save_file({"in.ids": ids, "out.logits": logits.contiguous()}, folder.with_suffix(".io.safetensors"))
