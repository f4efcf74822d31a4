//! Model files for kovar: GGUF and safetensors, memory-mapped.
