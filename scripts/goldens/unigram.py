"""Makes the unigram vocabularies and golden ids of kovar-text's tokenizer tests with SentencePiece.

    pip install sentencepiece gguf protobuf
    python scripts/goldens/unigram.py STORIES_TXT crates/kovar-text/tests/data

STORIES_TXT is the output of `grammar_stories.py 3000 7 stories.txt`; the strings are those of tok-strings.json,
which `tokenizer.py` writes. `tok-unigram.gguf` has a normalisation, no byte tokens and merged spaces;
`tok-unigram-bytes.gguf` has byte tokens and leaves text as it is.

The normalisation is NFKC for the characters below U+0250, for full-width and a few other forms, and for the
characters of the strings; white space and control characters are treated as in SentencePiece's `nmt_nfkc`. It is
a part of `nmt_nfkc` because the whole takes 300 KB.
"""

import json
import sys
import tempfile
import unicodedata
from pathlib import Path

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

SPACES = "\t\n\r\u00a0\u2000\u2001\u2002\u2003\u2028\u200b\u3000\ufeff\u0085"
REMOVED = [*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F]


def rules(strings):
    """Source and target code points, as hexadecimal numbers."""
    table = {character: " " for character in SPACES}
    table.update({chr(code): "" for code in REMOVED})
    characters = {character for text in strings for character in text}
    characters.update(map(chr, [*range(0xA0, 0x250), *range(0xFB00, 0xFB07), *range(0xFF01, 0xFF5F)]))
    for character in sorted(characters - table.keys()):
        normal = unicodedata.normalize("NFKC", character)
        if normal != character:
            table[character] = normal
    for text in strings:
        for left, right in zip(text, text[1:]):
            normal = unicodedata.normalize("NFKC", left + right)
            if unicodedata.combining(right) and len(normal) == 1:
                table[left + right] = normal
    spell = lambda text: " ".join(f"{ord(c):X}" for c in text)
    return "".join(f"{spell(source)}\t{spell(target)}\n" for source, target in sorted(table.items()))


def train(stories, folder, name, **options):
    sentencepiece.SentencePieceTrainer.train(
        input=str(stories),
        model_prefix=str(folder / name),
        model_type="unigram",
        character_coverage=1.0,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        control_symbols=["<|im_end|>"],
        user_defined_symbols=["<user>", "ab"],
        num_threads=1,
        **options,
    )
    return (folder / f"{name}.model").read_bytes()


def write_gguf(blob, path):
    proto = sentencepiece_model_pb2.ModelProto.FromString(blob)
    writer = gguf.GGUFWriter(path, "t5")
    writer.add_name("unigram-story-vocabulary")
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([piece.piece for piece in proto.pieces])
    writer.add_token_scores([piece.score for piece in proto.pieces])
    writer.add_token_types([piece.type for piece in proto.pieces])
    writer.add_add_space_prefix(proto.normalizer_spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(proto.normalizer_spec.remove_extra_whitespaces)
    if proto.normalizer_spec.precompiled_charsmap:
        writer.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def write_golden(blob, path, strings):
    processor = sentencepiece.SentencePieceProcessor(model_proto=blob)
    rows = [processor.encode(text) for text in strings]
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"peer": %s,\n' % json.dumps(f"sentencepiece {sentencepiece.__version__}"))
        file.write('"ids": [\n%s\n]}\n' % ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows))


def main(stories, out):
    out = Path(out)
    strings = json.loads((out / "tok-strings.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        lines = Path(stories).read_text(encoding="utf-8").splitlines()
        corpus = folder / "corpus.txt"
        text = [line for line in lines if line and "<|" not in line][:4000]
        corpus.write_text("\n".join(text), encoding="utf-8")
        (folder / "rules.tsv").write_text(rules(strings), encoding="utf-8")
        models = {
            out / "tok-unigram": train(
                corpus, folder, "unigram", vocab_size=400, normalization_rule_tsv=str(folder / "rules.tsv")
            ),
            out / "tok-unigram-bytes": train(
                corpus,
                folder,
                "bytes",
                vocab_size=600,
                byte_fallback=True,
                normalization_rule_name="identity",
                add_dummy_prefix=False,
                remove_extra_whitespaces=False,
            ),
        }
        for path, blob in models.items():
            write_gguf(blob, path.with_suffix(".gguf"))
            write_golden(blob, path.with_suffix(".json"), strings)


if __name__ == "__main__":
    main(*sys.argv[1:])
