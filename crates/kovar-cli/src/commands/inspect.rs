use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use kovar::gguf::{Array, Value};
use kovar::{DType, ModelFile, ModelFormat, ModelTensor};
use serde::Serialize;
use serde_json::json;

use crate::args::ModelSource;
use crate::output::Table;
use crate::{format, load, output};

/// Number of elements shown of a shortened array.
const HEAD: usize = 6;

/// Arrays of up to this many elements are shown in full.
const SHORT_ARRAY: usize = 16;

/// Number of characters shown of a shortened string.
const SHORT_TEXT: usize = 120;

/// Show the contents of a model file.
///
/// Lists metadata, tensors and their sizes. Only the header is read, so this is fast for files of
/// any size, and it works on GGUF files of unsupported architectures. A folder is shown as the GGUF
/// file to which it would be converted.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  kovar inspect model.gguf
  kovar inspect model.gguf --full | less
  kovar inspect model.gguf --json | jq '.metadata[\"general.name\"]'
  kovar inspect llama-stories")]
pub struct Inspect {
    /// The model, as for `generate -m`: a GGUF file, a folder, or the name of an embedded model.
    #[arg(value_name = "FILE")]
    file: ModelSource,

    /// Show long arrays and strings in full.
    #[arg(long)]
    full: bool,

    /// Print JSON. Without --full, a long array is an object with its kind, length and head.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    file: String,
    format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    file_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<u32>,
    parameters: u64,
    tensor_bytes: u64,
    metadata: serde_json::Map<String, serde_json::Value>,
    tensors: Vec<Tensor>,
    dtypes: Vec<DTypeTotal>,
}

#[derive(Serialize)]
struct Tensor {
    name: String,
    dtype: &'static str,
    dims: Vec<usize>,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
}

#[derive(Serialize)]
struct DTypeTotal {
    dtype: &'static str,
    tensors: usize,
    parameters: u64,
    bytes: u64,
}

impl Inspect {
    /// Runs the command.
    ///
    /// # Errors
    /// The file cannot be opened or its header is damaged.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let file = load::open(&self.file)?;
        if self.json {
            output::write_json(&self.report(&file))?;
        } else {
            output::write(&self.text(&file))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn report(&self, file: &ModelFile) -> Report {
        let metadata = file.metadata().iter();
        let dtypes = dtype_totals(file);
        let (version, alignment) = match file.format() {
            ModelFormat::Gguf {
                version, alignment, ..
            } => (Some(version), Some(alignment)),
            _ => (None, None),
        };
        Report {
            file: self.file.to_string(),
            format: file.format().to_string(),
            version,
            file_bytes: file.file_len(),
            alignment,
            parameters: dtypes.iter().map(|total| total.parameters).sum(),
            tensor_bytes: dtypes.iter().map(|total| total.bytes).sum(),
            metadata: metadata
                .map(|(key, value)| (key.to_owned(), json_value(value, self.full)))
                .collect(),
            tensors: file.tensors().map(tensor).collect(),
            dtypes,
        }
    }

    fn text(&self, file: &ModelFile) -> String {
        let dtypes = dtype_totals(file);
        let parameters = dtypes.iter().map(|total| total.parameters).sum();
        let mut text = format!(
            "{}: {}, {} ({} bytes), {}, {} parameters\n",
            self.file,
            file.format(),
            format::bytes(file.file_len()),
            file.file_len(),
            format::plural(file.tensors().len(), "tensor"),
            format::count(parameters),
        );

        text.push_str(&format!("\nmetadata ({}):\n", file.metadata().len()));
        let mut table = Table::new(&["key", "kind", "value"]);
        for (key, value) in file.metadata().iter() {
            table.row([printable(key), value.describe(), self.value(value)]);
        }
        text.push_str(&table.render("  "));

        text.push_str(&format!("\ntensors ({}):\n", file.tensors().len()));
        let mut table = Table::new(&["name", "dtype", ">bytes", "dims"]);
        for tensor in file.tensors() {
            table.row([
                printable(tensor.name()),
                tensor.dtype().to_string(),
                tensor.size().to_string(),
                format!("{:?}", tensor.dims()),
            ]);
        }
        text.push_str(&table.render("  "));

        text.push_str("\nby dtype:\n");
        let mut table = Table::new(&["dtype", ">tensors", ">parameters", ">bytes", ">size"]);
        for total in &dtypes {
            table.row([
                total.dtype.to_owned(),
                total.tensors.to_string(),
                total.parameters.to_string(),
                total.bytes.to_string(),
                format::bytes(total.bytes),
            ]);
        }
        text.push_str(&table.render("  "));
        text
    }

    fn value(&self, value: &Value) -> String {
        match value {
            Value::String(text) if !self.full => short_text(text),
            Value::Array(array) => self.array(array),
            other => other.to_string(),
        }
    }

    fn array(&self, array: &Array) -> String {
        let len = array.len();
        let shown = if self.full || len <= SHORT_ARRAY {
            len
        } else {
            HEAD
        };
        let elements = (0..shown).filter_map(|index| array.get(index));
        let elements: Vec<String> = elements.map(|value| self.value(&value)).collect();
        let more = if shown < len {
            format!(", ... ({len})")
        } else {
            String::new()
        };
        format!("[{}{more}]", elements.join(", "))
    }
}

/// A name with control characters escaped, so that a file cannot control the terminal.
fn printable(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = (!c.is_control()).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

fn short_text(text: &str) -> String {
    match text.char_indices().nth(SHORT_TEXT) {
        None => format!("{text:?}"),
        Some((end, _)) => {
            let head = text.get(..end).unwrap_or_default();
            format!("{head:?}... ({} bytes)", text.len())
        }
    }
}

fn json_value(value: &Value, full: bool) -> serde_json::Value {
    match value {
        Value::U8(v) => (*v).into(),
        Value::I8(v) => (*v).into(),
        Value::U16(v) => (*v).into(),
        Value::I16(v) => (*v).into(),
        Value::U32(v) => (*v).into(),
        Value::I32(v) => (*v).into(),
        Value::U64(v) => (*v).into(),
        Value::I64(v) => (*v).into(),
        Value::F32(v) => json!(v),
        Value::F64(v) => json!(v),
        Value::Bool(v) => (*v).into(),
        Value::String(v) => json!(v),
        Value::Array(array) => json_array(array, full),
        other => json!(other.to_string()),
    }
}

fn json_array(array: &Array, full: bool) -> serde_json::Value {
    let elements = |count: usize| -> Vec<serde_json::Value> {
        let values = (0..count).filter_map(|index| array.get(index));
        values.map(|value| json_value(&value, full)).collect()
    };
    let len = array.len();
    if full || len <= SHORT_ARRAY {
        return elements(len).into();
    }
    json!({
        "array_of": array.element_kind().name(),
        "len": len,
        "head": elements(HEAD),
    })
}

fn tensor(tensor: &ModelTensor) -> Tensor {
    Tensor {
        name: tensor.name().to_owned(),
        dtype: tensor.dtype().name(),
        dims: tensor.dims().to_vec(),
        bytes: tensor.size(),
        offset: tensor.offset(),
    }
}

/// The totals of the tensors of each dtype, in the order of [`DType`].
fn dtype_totals(file: &ModelFile) -> Vec<DTypeTotal> {
    let mut totals: BTreeMap<DType, DTypeTotal> = BTreeMap::new();
    for tensor in file.tensors() {
        let total = totals.entry(tensor.dtype()).or_insert_with(|| DTypeTotal {
            dtype: tensor.dtype().name(),
            tensors: 0,
            parameters: 0,
            bytes: 0,
        });
        total.tensors += 1;
        total.parameters += tensor.elements() as u64;
        total.bytes += tensor.size() as u64;
    }
    totals.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_are_truncated_at_a_character() {
        assert_eq!(short_text("a\nb"), "\"a\\nb\"");
        let text = "ä".repeat(SHORT_TEXT + 1);
        let shown = short_text(&text);
        assert!(shown.ends_with("\"... (242 bytes)"), "{shown}");
        assert_eq!(shown.matches('ä').count(), SHORT_TEXT);
    }

    #[test]
    fn long_arrays_are_shortened_in_json_unless_asked() {
        let array: Value = (0..100u32).collect::<Vec<_>>().into();
        let short = json_value(&array, false);
        assert_eq!(short["len"], 100);
        assert_eq!(short["array_of"], "u32");
        assert_eq!(short["head"].as_array().map(Vec::len), Some(HEAD));
        assert_eq!(json_value(&array, true)[99], 99);
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb"), "a\\u{1b}[2Jb");
    }
}
