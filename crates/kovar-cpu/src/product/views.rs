//! Row-major f32 matrices with a row stride, over borrowed memory.

use std::marker::PhantomData;

use super::ProductError;

/// A `[rows, cols]` f32 matrix, rows `stride` elements apart, that borrows its memory as `M`.
#[derive(Clone, Copy, Debug)]
pub struct MatrixView<M> {
    ptr: *mut f32,
    rows: usize,
    cols: usize,
    stride: usize,
    memory: PhantomData<M>,
}

/// A read-only matrix.
pub type Rows<'a> = MatrixView<&'a [f32]>;

/// A writable matrix.
pub type RowsMut<'a> = MatrixView<&'a mut [f32]>;

// SAFETY: a view is a borrow of f32s of the kind of `M`.
unsafe impl<M: Send> Send for MatrixView<M> {}
// SAFETY: as above. Safe code writes nothing through a shared reference to a view; kernels that do
// argue that they write disjoint elements.
unsafe impl<M: Sync> Sync for MatrixView<M> {}

/// Checks that `rows` rows of `cols` elements, `stride` apart, are inside `len` elements.
pub(super) fn check_fit(
    rows: usize,
    cols: usize,
    stride: usize,
    len: usize,
) -> Result<(), ProductError> {
    let end = match rows.checked_sub(1) {
        None => Some(0),
        Some(last) => last.checked_mul(stride).and_then(|at| at.checked_add(cols)),
    };
    if end.is_some_and(|end| end <= len) {
        return Ok(());
    }
    Err(ProductError::ViewTooLarge {
        rows,
        cols,
        stride,
        len,
    })
}

impl<M> MatrixView<M> {
    fn over(ptr: *mut f32, rows: usize, cols: usize, stride: usize) -> Self {
        Self {
            ptr,
            rows,
            cols,
            stride,
            memory: PhantomData,
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Elements from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

impl<'a> Rows<'a> {
    /// A view of `data`.
    ///
    /// # Errors
    /// [`ProductError::ViewTooLarge`] if `data` is too short.
    pub fn new(
        data: &'a [f32],
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self, ProductError> {
        check_fit(rows, cols, stride, data.len())?;
        Ok(Self::over(data.as_ptr().cast_mut(), rows, cols, stride))
    }

    /// A view of raw memory.
    ///
    /// # Safety
    /// For the lifetime `'a` each of the rows is readable and nothing writes to it.
    pub unsafe fn from_raw_parts(ptr: *const f32, rows: usize, cols: usize, stride: usize) -> Self {
        Self::over(ptr.cast_mut(), rows, cols, stride)
    }

    /// The first element.
    pub fn as_ptr(&self) -> *const f32 {
        self.ptr
    }
}

impl<'a> RowsMut<'a> {
    /// A view of `data`.
    ///
    /// # Errors
    /// [`ProductError::ViewTooLarge`] if `data` is too short, [`ProductError::Overlap`] if rows
    /// overlap.
    pub fn new(
        data: &'a mut [f32],
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self, ProductError> {
        check_fit(rows, cols, stride, data.len())?;
        if rows > 1 && stride < cols {
            return Err(ProductError::Overlap { cols, stride });
        }
        Ok(Self::over(data.as_mut_ptr(), rows, cols, stride))
    }

    /// A view of raw memory.
    ///
    /// # Safety
    /// For the lifetime `'a` each of the rows is writable, rows do not overlap, and nothing else
    /// reads or writes them.
    pub unsafe fn from_raw_parts(ptr: *mut f32, rows: usize, cols: usize, stride: usize) -> Self {
        Self::over(ptr, rows, cols, stride)
    }

    /// The first element.
    pub fn as_mut_ptr(&self) -> *mut f32 {
        self.ptr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_beyond_their_memory_are_errors() {
        let mut data = [0.0; 10];
        assert!(Rows::new(&data, 2, 4, 6).is_ok());
        assert!(Rows::new(&data, 2, 5, 6).is_err());
        assert!(Rows::new(&data, usize::MAX, 4, 6).is_err());
        assert!(Rows::new(&data, 0, 4, 6).is_ok());
        assert!(matches!(
            RowsMut::new(&mut data, 2, 4, 3),
            Err(ProductError::Overlap { .. })
        ));
    }
}
