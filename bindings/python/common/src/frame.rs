//! A table as columns of Arrow, handed to other packages by the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, StructArray,
    UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// A table.
#[pyclass(frozen, module = "thinair._native")]
#[derive(Debug)]
pub struct Frame(RecordBatch);

/// A column: its name, its values, and true if values may be missing.
#[derive(Debug)]
pub struct Series {
    name: String,
    values: ArrayRef,
    nullable: bool,
}

impl Series {
    fn new(name: impl Into<String>, values: ArrayRef) -> Self {
        Self { name: name.into(), values, nullable: false }
    }

    /// Returns a column of counts.
    pub fn counts(name: impl Into<String>, values: impl Iterator<Item = Option<u64>>) -> Self {
        Self::new(name, Arc::new(values.collect::<UInt64Array>()))
    }

    /// Returns a column of texts.
    pub fn texts<T: AsRef<str>>(name: impl Into<String>, values: impl Iterator<Item = Option<T>>) -> Self {
        Self::new(name, Arc::new(values.collect::<StringArray>()))
    }

    /// Returns a column of numbers.
    pub fn numbers(name: impl Into<String>, values: impl Iterator<Item = Option<f64>>) -> Self {
        Self::new(name, Arc::new(values.collect::<Float64Array>()))
    }

    /// Returns a column of true and false.
    pub fn flags(name: impl Into<String>, values: impl Iterator<Item = Option<bool>>) -> Self {
        Self::new(name, Arc::new(values.collect::<BooleanArray>()))
    }

    /// Returns the column as one whose values may be missing.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { nullable: true, ..self }
    }
}

impl Frame {
    /// Returns a table of columns of equal length.
    ///
    /// # Errors
    /// A column is shorter than others, or lacks a value without being optional.
    pub fn new(columns: impl IntoIterator<Item = Series>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|column| (column.name, column.values, column.nullable));
        RecordBatch::try_from_iter_with_nullable(columns).map(Self).map_err(|error| arrow_error(&error))
    }
}

type Pair<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

#[pymethods]
impl Frame {
    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The first rows, at most `most`, each a dictionary.
    fn rows<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let schema = self.0.schema();
        let row = |at: usize| {
            let row = PyDict::new(py);
            for (field, column) in schema.fields().iter().zip(self.0.columns()) {
                let name = field.name();
                match field.data_type() {
                    _ if column.is_null(at) => row.set_item(name, py.None())?,
                    DataType::UInt64 => row.set_item(name, column.as_primitive::<UInt64Type>().value(at))?,
                    DataType::Float64 => {
                        row.set_item(name, column.as_primitive::<Float64Type>().value(at))?
                    }
                    DataType::Boolean => row.set_item(name, column.as_boolean().value(at))?,
                    _ => row.set_item(name, column.as_string::<i32>().value(at))?,
                }
            }
            Ok(row)
        };
        (0..self.0.num_rows().min(most)).map(row).collect()
    }

    fn arrow_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema =
            FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(|error| arrow_error(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn arrow_array<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let (array, schema) =
            to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(|error| arrow_error(&error))?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    fn arrow_stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

fn arrow_error(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
