#!/usr/bin/env python3
"""Make the rwkv7-tiny golden: a small RWKV-7 with random weights and a small vocabulary, once under BlinkDL's
tensor names and once as GGUF under llama.cpp's, and its logits by a plain f64 reference (Peng et al. 2025,
arXiv:2503.14456).

    pip install numpy safetensors gguf
    python scripts/goldens/rwkv7_tiny.py OUT_FOLDER

With --check MODEL.safetensors GOLDEN.json the reference is compared with the golden of a trained model.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file

VOCAB, WIDTH, LAYERS, HEAD, FFN = 64, 32, 3, 16, 64
RANKS = {"w": 8, "a": 6, "v": 5, "g": 12}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_norm(x, p, name, eps=1e-5, groups=1):
    g = x.reshape(*x.shape[:-1], groups, -1)
    g = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + eps)
    return g.reshape(x.shape) * p[f"{name}.weight"] + p[f"{name}.bias"]


def reference(p, ids):
    """Logits [tokens, vocab] of ids by the weights p, everything in f64."""
    p = {name: value.astype(np.float64) for name, value in p.items()}
    x = layer_norm(p["emb.weight"][ids], p, "blocks.0.ln0")
    heads, head = p["blocks.0.att.r_k"].shape
    layers = 1 + max(int(name.split(".")[1]) for name in p if name.startswith("blocks."))
    tokens, first = len(ids), None
    for layer in range(layers):
        block = f"blocks.{layer}."
        att = lambda name: p[f"{block}att.{name}"]
        small = lambda n, x, f=lambda x: x: f(x @ att(n + "1")) @ att(n + "2")

        h = layer_norm(x, p, block + "ln1")
        before = np.vstack([np.zeros(h.shape[1]), h[:-1]])
        mix = {n: h + (before - h) * att("x_" + n).reshape(-1) for n in "rwkvag"}
        r = mix["r"] @ att("receptance.weight").T
        k = mix["k"] @ att("key.weight").T
        v = mix["v"] @ att("value.weight").T
        w = np.exp(-np.exp(-0.5) * sigmoid(att("w0").reshape(-1) + small("w", mix["w"], np.tanh)))
        a = sigmoid(att("a0").reshape(-1) + small("a", mix["a"]))
        g = small("g", mix["g"], sigmoid)
        if first is None:
            first = v
        else:
            v = v + (first - v) * sigmoid(att("v0").reshape(-1) + small("v", mix["v"]))
        kk = (k * att("k_k").reshape(-1)).reshape(tokens, heads, head)
        kk = kk / np.maximum(np.linalg.norm(kk, axis=-1, keepdims=True), 1e-12)
        k = k * (1 + (a - 1) * att("k_a").reshape(-1))
        r, w, k, v_, a = (t.reshape(tokens, heads, head) for t in (r, w, k, v, a))
        y = np.zeros_like(r)
        state = np.zeros((heads, head, head))  # values by keys
        for t in range(tokens):
            for i in range(heads):
                s = state[i]
                s = s * w[t, i] - np.outer(s @ kk[t, i], kk[t, i] * a[t, i])
                state[i] = s + np.outer(v_[t, i], k[t, i])
                y[t, i] = state[i] @ r[t, i]
        y = layer_norm(y.reshape(tokens, -1), p, block + "att.ln_x", eps=64e-5, groups=heads)
        y = y + ((r * k * att("r_k")).sum(-1, keepdims=True) * v_).reshape(tokens, -1)
        x = x + (y * g) @ att("output.weight").T

        h = layer_norm(x, p, block + "ln2")
        before = np.vstack([np.zeros(h.shape[1]), h[:-1]])
        h = h + (before - h) * p[f"{block}ffn.x_k"].reshape(-1)
        h = np.maximum(h @ p[f"{block}ffn.key.weight"].T, 0) ** 2
        x = x + h @ p[f"{block}ffn.value.weight"].T
    return layer_norm(x, p, "ln_out") @ p["head.weight"].T


def weights(random):
    p = {}

    def normal(name, *dims, std=None, mean=0.0):
        std = std if std is not None else 1 / np.sqrt(dims[-1])
        p[name] = (mean + std * random.standard_normal(dims)).astype(np.float32)

    def norm(name):
        normal(name + ".weight", WIDTH, std=0.2, mean=1.0)
        normal(name + ".bias", WIDTH, std=0.1)

    normal("emb.weight", VOCAB, WIDTH, std=1.0)
    normal("head.weight", VOCAB, WIDTH)
    norm("ln_out")
    norm("blocks.0.ln0")
    for layer in range(LAYERS):
        block = f"blocks.{layer}."
        for name in ("ln1", "ln2", "att.ln_x"):
            norm(block + name)
        for name in "rwkvag":
            p[f"{block}att.x_{name}"] = random.random((1, 1, WIDTH), dtype=np.float32)
        for name, rank in RANKS.items():
            if name == "v" and layer == 0:
                continue
            normal(f"{block}att.{name}1", WIDTH, rank, std=1 / np.sqrt(WIDTH))
            normal(f"{block}att.{name}2", rank, WIDTH, std=1 / np.sqrt(rank))
            if name != "g":
                normal(f"{block}att.{name}0", 1, 1, WIDTH, std=1.0)
        normal(block + "att.k_k", 1, 1, WIDTH, std=0.2, mean=0.8)
        normal(block + "att.k_a", 1, 1, WIDTH, std=0.2, mean=1.0)
        normal(block + "att.r_k", WIDTH // HEAD, HEAD, std=0.2)
        for name in ("receptance", "key", "value", "output"):
            normal(f"{block}att.{name}.weight", WIDTH, WIDTH)
        p[block + "ffn.x_k"] = random.random((1, 1, WIDTH), dtype=np.float32)
        normal(block + "ffn.key.weight", FFN, WIDTH)
        normal(block + "ffn.value.weight", WIDTH, FFN)
    return p


def write_gguf(path, p):
    writer = gguf.GGUFWriter(path, "rwkv7")
    writer.add_vocab_size(VOCAB)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_layer_norm_eps(1e-5)
    writer.add_wkv_head_size(HEAD)
    writer.add_decay_lora_rank(RANKS["w"])
    writer.add_iclr_lora_rank(RANKS["a"])
    writer.add_value_residual_mix_lora_rank(RANKS["v"])
    writer.add_gate_lora_rank(RANKS["g"])
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(0)
    writer.add_tokenizer_model("none")

    def add(name, value):
        writer.add_tensor(name, np.ascontiguousarray(value))

    def norm(name, source):
        add(name + ".weight", p[source + ".weight"])
        add(name + ".bias", p[source + ".bias"])

    add("token_embd.weight", p["emb.weight"])
    add("output.weight", p["head.weight"])
    norm("token_embd_norm", "blocks.0.ln0")
    norm("output_norm", "ln_out")
    for layer in range(LAYERS):
        source, block = f"blocks.{layer}.", f"blk.{layer}."
        norm(block + "attn_norm", source + "ln1")
        norm(block + "attn_norm_2", source + "ln2")
        norm(block + "time_mix_ln", source + "att.ln_x")
        lerp = np.stack([p[f"{source}att.x_{n}"].reshape(1, 1, WIDTH) for n in "rwkvag"])
        add(block + "time_mix_lerp_fused.weight", lerp)
        for name in RANKS:
            # llama.cpp wants the first block's tensors of the value, which nothing reads.
            of = "a" if name == "v" and layer == 0 else name
            for i in "12":
                add(f"{block}time_mix_{name}{i}.weight", p[f"{source}att.{of}{i}"].T)
            if name != "g":
                add(f"{block}time_mix_{name}0.weight", p[f"{source}att.{of}0"].reshape(-1))
        for name in ("k_k", "k_a", "r_k"):
            add(f"{block}time_mix_{name}.weight", p[f"{source}att.{name}"].reshape(-1))
        for name in ("receptance", "key", "value", "output"):
            add(f"{block}time_mix_{name}.weight", p[f"{source}att.{name}.weight"])
        add(block + "channel_mix_lerp_k.weight", p[source + "ffn.x_k"])
        add(block + "channel_mix_key.weight", p[source + "ffn.key.weight"])
        add(block + "channel_mix_value.weight", p[source + "ffn.value.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_vocabulary(path):
    """A vocabulary in the form of RWKV World's, in the order of length and bytes as it is."""
    texts = "\t \n \n\n \r\n a b c d e f g h i l n o r s t u w y ' \" \\ , . 0 1"
    words = " the|the|Once| upon|upon a| time|é|日|it's|'\"|\u200b| \n"
    tokens = {t.encode() for t in texts.split(" ") + words.split("|")} | {b" ", b"\xe6\x97", b"\xff"}
    lines = []
    for i, token in enumerate(sorted(tokens, key=lambda t: (len(t), t)), 1):
        try:
            literal = repr(token.decode())
        except UnicodeDecodeError:
            literal = repr(token)
        lines.append(f"{i} {literal} {len(token)}\n")
    assert len(lines) < VOCAB
    path.write_text("".join(lines), encoding="utf-8")


def check(model, golden):
    p, worst = load_file(model), 0.0
    for case in json.loads(Path(golden).read_text())["cases"]:
        logits = reference(p, case["prompt_ids"] + case["greedy_ids"])
        for top in case["logits_top20"]:
            difference = logits[top["position"]][top["ids"]] - top["logits"]
            worst = max(worst, np.abs(difference).max())
    print(f"largest difference of a logit: {worst}")


if sys.argv[1] == "--check":
    check(*sys.argv[2:])
    sys.exit()
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(7)
p = weights(random)
ids = random.integers(0, VOCAB, 48)
logits = reference(p, ids).astype(np.float32)
(folder / "rwkv7-tiny").mkdir(exist_ok=True)
save_file(p, folder / "rwkv7-tiny" / "rwkv7-tiny.safetensors")
write_vocabulary(folder / "rwkv7-tiny" / "rwkv_vocab_v20230424.txt")
save_file(
    {"in.ids": ids.reshape(1, -1), "out.logits": logits[None]},
    folder / "rwkv7-tiny.io.safetensors",
)
write_gguf(folder / "rwkv7-tiny.gguf", p)
