#!/usr/bin/env python3
"""Makes the tokenizer.json files of kovar's tests, and golden ids of the `tokenizers` package for them.

    pip install tokenizers gguf
    python scripts/goldens/hugging_face_tokenizer.py crates/kovar-text/tests/data

Reads the vocabularies of tok-bpe.gguf and tok-spm.gguf (made by tokenizer.py), tok-unigram.gguf and
tok-unigram-bytes.gguf (made by unigram.py), and the strings of tok-strings.json. The byte-level families
differ in a few values of tokenizer.json only; these are stored with their ids.
"""

import json
import sys
from pathlib import Path

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers as pre
from tokenizers import processors

TIKTOKEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL, USER_DEFINED, BYTE, UNKNOWN = 3, 4, 6, 2


def split(pattern):
    bytes_only = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre.Sequence([pre.Split(Regex(pattern), "isolated"), bytes_only])


def byte_level():
    return pre.ByteLevel(add_prefix_space=False, use_regex=True)


FAMILIES = {
    "gpt-2": (byte_level(), False),
    "smollm": (pre.Sequence([pre.Digits(individual_digits=True), byte_level()]), False),
    "llama-bpe": (split(TIKTOKEN % "{1,3}"), True),
    "qwen2": (split(TIKTOKEN % ""), False),
}


def vocabulary(path):
    fields = gguf.GGUFReader(path).fields
    get = lambda key: fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else None
    return get("tokens"), get("token_type"), get("merges"), get("scores")


def add_tokens(tokenizer, tokens, types):
    for kind, special in [(CONTROL, True), (UNKNOWN, True), (USER_DEFINED, False)]:
        added = [AddedToken(t, special=special, normalized=False) for t, k in zip(tokens, types) if k == kind]
        tokenizer.add_special_tokens(added) if special else tokenizer.add_tokens(added)


def template(before, after, tokenizer):
    parts = [t for t in (before,) if t] + ["$A"] + [t for t in (after,) if t]
    special = [(t, tokenizer.token_to_id(t)) for t in parts if t != "$A"]
    return processors.TemplateProcessing(single=" ".join(parts), special_tokens=special)


def bpe(tokens, types, merges, family):
    cuts, ignore_merges = FAMILIES[family]
    vocab = {token: i for i, token in enumerate(tokens)}
    model = models.BPE(vocab, [tuple(m.split(" ")) for m in merges], ignore_merges=ignore_merges)
    tokenizer = Tokenizer(model)
    if family == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = cuts
    tokenizer.decoder = decoders.ByteLevel()
    add_tokens(tokenizer, tokens, types)
    if family == "llama-bpe":
        steps = [processors.ByteLevel(trim_offsets=False), template("<|endoftext|>", None, tokenizer)]
        tokenizer.post_processor = processors.Sequence(steps)
    return tokenizer


def spm(tokens, types, scores):
    vocab = {token: i for i, token in enumerate(tokens)}
    rules = []
    for token, kind, score in zip(tokens, types, scores):
        if kind == 1:
            pairs = [(token[:i], token[i:]) for i in range(1, len(token))]
            rules += [(score, -i, pair) for i, pair in enumerate(pairs) if pair[0] in vocab and pair[1] in vocab]
    rules.sort(reverse=True)
    merges = [pair for _, _, pair in rules]
    model = models.BPE(vocab, merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    steps = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    add_tokens(tokenizer, tokens, types)
    tokenizer.post_processor = template("<s>", "</s>", tokenizer)
    return tokenizer


def unigram(path):
    fields = gguf.GGUFReader(path).fields
    get = lambda key: fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else None
    tokens, types = get("tokens"), get("token_type")
    vocab = list(zip(tokens, map(float, get("scores"))))
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=2, byte_fallback=BYTE in types))
    steps = []
    if get("precompiled_charsmap"):
        steps.append(normalizers.Precompiled(bytes(get("precompiled_charsmap"))))
    if get("remove_extra_whitespaces"):
        steps += [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = "always" if get("add_space_prefix") else "never"
    tokenizer.pre_tokenizer = pre.Metaspace(replacement="\u2581", prepend_scheme=scheme, split=False)
    add_tokens(tokenizer, tokens, types)
    tokenizer.post_processor = template(None, "</s>", tokenizer)
    return tokenizer


def ids(tokenizer, strings):
    """For each string the ids without and with the tokens around a text."""
    rows = [[tokenizer.encode(s, add_special_tokens=a).ids for a in (False, True)] for s in strings]
    return rows


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main(data):
    strings = json.loads((data / "tok-strings.json").read_text(encoding="utf-8"))
    goldens = {}
    tokens, types, merges, _ = vocabulary(data / "tok-bpe.gguf")
    for family in FAMILIES:
        tokenizer = bpe(tokens, types, merges, family)
        file = json.loads(tokenizer.to_str())
        changes = {key: file[key] for key in ("normalizer", "pre_tokenizer", "post_processor")}
        changes["ignore_merges"] = file["model"]["ignore_merges"]
        goldens[family] = {**changes, "ids": ids(tokenizer, strings)}
        if family == "gpt-2":
            (data / "hf-bpe.json").write_text(compact(file) + "\n", encoding="utf-8")
    tokens, types, _, scores = vocabulary(data / "tok-spm.gguf")
    tokenizer = spm(tokens, types, scores)
    (data / "hf-spm.json").write_text(compact(json.loads(tokenizer.to_str())) + "\n", encoding="utf-8")
    goldens["spm"] = {"ids": ids(tokenizer, strings)}
    for name in ("unigram", "unigram-bytes"):
        tokenizer = unigram(data / f"tok-{name}.gguf")
        text = compact(json.loads(tokenizer.to_str())) + "\n"
        (data / f"hf-{name}.json").write_text(text, encoding="utf-8")
        goldens[name] = {"ids": ids(tokenizer, strings)}
    source = f"tokenizers {tokenizers.__version__}"
    rows = ",\n".join(f"{json.dumps(k)}: {compact(v)}" for k, v in goldens.items())
    (data / "hf-ids.json").write_text(f'{{"source": "{source}",\n{rows}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
