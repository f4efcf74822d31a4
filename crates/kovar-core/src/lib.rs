//! Dtypes, quantised block formats and their reference codecs, layouts, the operation vocabulary,
//! graphs with shape and alias inference, and the backend traits of kovar.

#![forbid(unsafe_code)]

pub mod backend;
mod dims;
mod dtype;
pub mod error;
pub mod fusion;
mod graph;
mod host;
mod layout;
pub mod ops;
pub mod plain;
pub mod quant;

pub use dims::{Dims, MAX_RANK};
pub use dtype::DType;
pub use graph::{
    Graph, Node, NodeId, NodeRef, Scalar, ScalarId, Storage, StorageId, StorageKind, Value, ValueId,
};
pub use host::{HostBytes, HostMemory};
pub use layout::{Collapsed, Layout, Span, collapse};
