#!/usr/bin/env python3
"""Convert a Hugging Face folder of a Llama, Qwen2 or Qwen3 model to GGUF.

Reads config.json, model.safetensors (or the shards that model.safetensors.index.json names) and,
if there is one, a byte-level BPE tokenizer.json. Tensor names, metadata keys and the order of the
rows of the query and key projections are those that llama.cpp uses for its architectures (`llama`
turns adjacent pairs, the others halves).

    pip install gguf numpy safetensors
    python scripts/convert_hf_to_gguf.py MODEL_FOLDER OUT.gguf --type f16

Matrices are written in the type asked for, vectors (norms, rope factors) always in F32.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as GgmlType
from safetensors import safe_open

TYPES = {
    "f32": (GgmlType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (GgmlType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (GgmlType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}

TENSORS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
LAYER_TENSORS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.bias": "attn_output.bias",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
ARCHITECTURES = ("llama", "qwen2", "qwen3")
LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")
# Recomputed from the config by every reader; old checkpoints carry them along.
IGNORED = re.compile(r".*\.rotary_emb\.inv_freq")


class ConversionError(Exception):
    """The folder holds something that the converter does not know."""


def load_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def bf16_to_f32(raw, shape):
    return (np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)


def read_tensors(folder):
    """Yields (name, float array) of every tensor, file by file."""
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = sorted(set(load_json(index)["weight_map"].values()))
        files = [folder / name for name in names]
    else:
        files = [folder / "model.safetensors"]
    for path in files:
        bf16 = read_bf16(path)
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():
                yield name, bf16[name]() if name in bf16 else file.get_tensor(name)


def read_bf16(path):
    """Readers of the BF16 tensors of a file, which numpy has no type for."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))

    def reader(entry):
        start, end = entry["data_offsets"]

        def read():
            with open(path, "rb") as file:
                file.seek(8 + length + start)
                return bf16_to_f32(file.read(end - start), entry["shape"])

        return read

    return {
        name: reader(entry)
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "BF16"
    }


def interleave_heads(rows, n_heads):
    """Reorders the rows of a query or key projection from split halves to adjacent pairs.

    Hugging Face rotates row i of a head with row i + head_dim / 2; llama.cpp's `llama` rotates
    rows 2i and 2i + 1.
    """
    half = rows.shape[0] // n_heads // 2
    split = rows.reshape(n_heads, 2, half, *rows.shape[1:])
    return split.swapaxes(1, 2).reshape(rows.shape)


def gguf_name(name):
    if name in TENSORS:
        return TENSORS[name]
    layer = LAYER.fullmatch(name)
    if layer and layer[2] in LAYER_TENSORS:
        return f"blk.{layer[1]}.{LAYER_TENSORS[layer[2]]}"
    raise ConversionError(f"unknown tensor {name}")


def rope_parameters(config):
    """The rope settings of a config, in the form of transformers 5, whichever form it has."""
    settings = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    settings.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    settings.setdefault("rope_type", settings.pop("type", "default"))
    return settings


def llama3_factors(rope, head_dim):
    """The divisors of the rope frequencies of Llama 3.1, one for each pair of a head.

    Wavelengths above original_context / low_freq_factor are stretched by `factor`, those below
    original_context / high_freq_factor are left alone, and between them the frequency is
    interpolated.
    """
    factor = rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    context = rope["original_max_position_embeddings"]
    factors = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        if wavelength < context / high:
            factors.append(1.0)
        elif wavelength > context / low:
            factors.append(factor)
        else:
            smooth = (context / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)


def head_dim_of(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def write_hyperparameters(writer, config, rope):
    n_heads = config["num_attention_heads"]
    head_dim = head_dim_of(config)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or n_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(rope["rope_theta"])
    if head_dim * n_heads != config["hidden_size"]:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] not in ("default", "llama3"):
        raise ConversionError(f"unknown rope type {rope['rope_type']}")


def write_tokenizer(writer, folder, config, pre):
    path = folder / "tokenizer.json"
    if not path.exists():
        writer.add_tokenizer_model("none")
        return
    tokenizer = load_json(path)
    model = tokenizer["model"]
    if model["type"] != "BPE" or model.get("byte_fallback"):
        raise ConversionError("tokenizer.json is not a byte-level BPE")
    size = config["vocab_size"]
    tokens = [f"[PAD{i}]" for i in range(size)]
    kinds = [gguf.TokenType.UNUSED] * size
    for token, i in model["vocab"].items():
        tokens[i], kinds[i] = token, gguf.TokenType.NORMAL
    for added in tokenizer.get("added_tokens", []):
        tokens[added["id"]] = added["content"]
        special = added.get("special")
        kinds[added["id"]] = gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)


def write_special_tokens(writer, folder, config):
    def first(value):
        return value[0] if isinstance(value, list) else value

    bos, eos = first(config.get("bos_token_id")), first(config.get("eos_token_id"))
    if bos is not None:
        writer.add_bos_token_id(bos)
    if eos is not None:
        writer.add_eos_token_id(eos)
    settings = folder / "tokenizer_config.json"
    if not (folder / "tokenizer.json").exists():
        return
    settings = load_json(settings) if settings.exists() else {}
    writer.add_add_bos_token(bool(settings.get("add_bos_token", False)))
    if isinstance(settings.get("chat_template"), str):
        writer.add_chat_template(settings["chat_template"])


def convert(folder, out, type_name, name, pre):
    config = load_json(folder / "config.json")
    arch = config.get("model_type")
    if arch not in ARCHITECTURES:
        raise ConversionError(f"model_type is {arch}, not one of {', '.join(ARCHITECTURES)}")
    if config.get("use_sliding_window"):
        raise ConversionError("sliding windows are not converted")
    if config.get("hidden_act", "silu") != "silu":
        raise ConversionError(f"hidden_act is {config['hidden_act']}, not silu")
    ggml_type, file_type = TYPES[type_name]
    rope = rope_parameters(config)
    writer = gguf.GGUFWriter(out, arch)
    writer.add_type("model")
    writer.add_name(name)
    writer.add_file_type(file_type)
    write_hyperparameters(writer, config, rope)
    write_tokenizer(writer, folder, config, pre)
    write_special_tokens(writer, folder, config)

    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, head_dim_of(config)))
    n_heads = config["num_attention_heads"]
    heads = {"q_proj": n_heads, "k_proj": config.get("num_key_value_heads") or n_heads}
    for hf_name, data in read_tensors(folder):
        if IGNORED.fullmatch(hf_name):
            continue
        if hf_name == "lm_head.weight" and config.get("tie_word_embeddings"):
            continue
        for projection, count in heads.items():
            if arch == "llama" and f".{projection}." in hf_name:
                data = interleave_heads(data, count)
        kind = ggml_type if data.ndim > 1 else GgmlType.F32
        data = np.ascontiguousarray(data, dtype=np.float32)
        writer.add_tensor(gguf_name(hf_name), gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of the Hugging Face model")
    parser.add_argument("out", type=Path, help="GGUF file to write")
    parser.add_argument("--type", choices=TYPES, default="f16", help="type of the matrices")
    parser.add_argument("--name", help="general.name; the name of the folder if not given")
    parser.add_argument(
        "--pre",
        default="gpt-2",
        help="pre-tokenizer family as llama.cpp names it: gpt-2, llama-bpe, qwen2, smollm",
    )
    args = parser.parse_args()
    try:
        convert(args.folder, args.out, args.type, args.name or args.folder.resolve().name, args.pre)
    except (ConversionError, OSError, KeyError) as error:
        sys.exit(f"error: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
