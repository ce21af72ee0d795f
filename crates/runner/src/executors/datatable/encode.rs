//! Rows of the engine as Postgres reads them with `COPY … (FORMAT binary)`: exact for every type, without any text between.
//!
//! Invariant: what goes in comes out equal, NULL and empty kept apart; what Postgres cannot hold (a time outside its range,
//! a NUL byte in text) is an error, of ours here or of the server's. The layout is that of the server's `*_recv` functions.

use arrow::array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, IntervalMonthDayNanoArray, ListArray, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::record_batch::RecordBatch;
use pintail_core::sql::postgres::Wire;

/// What every stream begins with: a signature, no flags, no extension.
pub const HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What every stream ends with.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Days from 1970 to 2000, where Postgres counts from.
const EPOCH_DAYS: i32 = 10_957;

/// The same in microseconds.
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// Appends the rows of `batch` to `out`.
///
/// # Errors
/// A value that Postgres has no place for, or a column that is not what its wire says.
pub fn rows(batch: &RecordBatch, wires: &[Wire], out: &mut Vec<u8>) -> Result<(), String> {
    let fields = i16::try_from(wires.len()).map_err(|_| "a table of Postgres has at most 1,600 columns".to_owned())?;
    for row in 0..batch.num_rows() {
        out.extend(fields.to_be_bytes());
        for (column, wire) in batch.columns().iter().zip(wires) {
            field(column.as_ref(), row, wire, out)?;
        }
    }
    Ok(())
}

/// Appends one value with its length, or NULL.
fn field(column: &dyn Array, row: usize, wire: &Wire, out: &mut Vec<u8>) -> Result<(), String> {
    if column.is_null(row) {
        out.extend((-1_i32).to_be_bytes());
        return Ok(());
    }
    let length_at = out.len();
    out.extend([0; 4]);
    value(column, row, wire, out)?;
    let length = out.len() - length_at - 4;
    let length = i32::try_from(length).map_err(|_| "a value is larger than 2 GB".to_owned())?;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn value(column: &dyn Array, row: usize, wire: &Wire, out: &mut Vec<u8>) -> Result<(), String> {
    match wire {
        Wire::Bool => out.push(u8::from(of::<BooleanArray>(column)?.value(row))),
        Wire::Int2 => out.extend(of::<Int16Array>(column)?.value(row).to_be_bytes()),
        Wire::Int4 => out.extend(of::<Int32Array>(column)?.value(row).to_be_bytes()),
        Wire::Int8 => out.extend(of::<Int64Array>(column)?.value(row).to_be_bytes()),
        Wire::Float4 => out.extend(of::<Float32Array>(column)?.value(row).to_be_bytes()),
        Wire::Float8 => out.extend(of::<Float64Array>(column)?.value(row).to_be_bytes()),
        Wire::Numeric(scale) => numeric(of::<Decimal128Array>(column)?.value(row), *scale, out),
        Wire::Text => out.extend(of::<StringArray>(column)?.value(row).as_bytes()),
        Wire::Bytea => out.extend(of::<BinaryArray>(column)?.value(row)),
        Wire::Date => out.extend(date(of::<Date32Array>(column)?.value(row))?.to_be_bytes()),
        Wire::Time => out.extend(of::<Time64MicrosecondArray>(column)?.value(row).to_be_bytes()),
        Wire::Timestamp | Wire::TimestampTz => {
            out.extend(timestamp(of::<TimestampMicrosecondArray>(column)?.value(row))?.to_be_bytes());
        }
        Wire::Interval => interval(of::<IntervalMonthDayNanoArray>(column)?, row, out),
        Wire::Uuid => out.extend(uuid(of::<StringArray>(column)?.value(row))?),
        Wire::Jsonb => {
            // The version of the format.
            out.push(1);
            out.extend(of::<StringArray>(column)?.value(row).as_bytes());
        }
        Wire::Array(element) => array(of::<ListArray>(column)?, row, element, out)?,
    }
    Ok(())
}

fn of<A: Array + 'static>(column: &dyn Array) -> Result<&A, String> {
    column
        .as_any()
        .downcast_ref::<A>()
        .ok_or_else(|| format!("a column of Arrow type {} was not expected", column.data_type()))
}

/// Base 10,000 digits around the decimal point, without leading and trailing zeros.
fn numeric(unscaled: i128, scale: u8, out: &mut Vec<u8>) {
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = format!("{:0>width$}", whole, width = whole.len().div_ceil(4) * 4);
    let fraction = format!("{:0<width$}", fraction, width = fraction.len().div_ceil(4) * 4);
    let group = |text: &[u8]| text.iter().fold(0_i16, |sum, digit| sum * 10 + i16::from(digit - b'0'));
    let mut groups: Vec<i16> = whole.as_bytes().chunks(4).chain(fraction.as_bytes().chunks(4)).map(group).collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    let trailing = groups.iter().rev().take_while(|group| **group == 0).count();
    groups.truncate(groups.len() - trailing);
    let count = |number: usize| i16::try_from(number).expect("a decimal has at most 38 digits");
    let weight = if groups.is_empty() { 0 } else { count(whole.len() / 4) - count(leading) - 1 };
    let sign: u16 = if unscaled < 0 { 0x4000 } else { 0 };
    out.extend(count(groups.len()).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(count(scale).to_be_bytes());
    groups.iter().for_each(|group| out.extend(group.to_be_bytes()));
}

/// The engine's infinities are the largest number and its negative.
fn date(days: i32) -> Result<i32, String> {
    match days {
        i32::MAX => Ok(i32::MAX),
        days if days == -i32::MAX => Ok(i32::MIN),
        days => days.checked_sub(EPOCH_DAYS).ok_or_else(|| "a date lies before those of Postgres".to_owned()),
    }
}

fn timestamp(micros: i64) -> Result<i64, String> {
    match micros {
        i64::MAX => Ok(i64::MAX),
        micros if micros == -i64::MAX => Ok(i64::MIN),
        micros => micros.checked_sub(EPOCH_MICROS).ok_or_else(|| "a time lies before those of Postgres".to_owned()),
    }
}

fn interval(column: &IntervalMonthDayNanoArray, row: usize, out: &mut Vec<u8>) {
    let value = column.value(row);
    // The engine counts microseconds, so nothing is lost.
    out.extend((value.nanoseconds / 1_000).to_be_bytes());
    out.extend(value.days.to_be_bytes());
    out.extend(value.months.to_be_bytes());
}

fn uuid(text: &str) -> Result<[u8; 16], String> {
    uuid::Uuid::try_parse(text).map(uuid::Uuid::into_bytes).map_err(|error| format!("`{text}` is no UUID: {error}"))
}

/// One dimension from 1 on; an empty array has none.
fn array(lists: &ListArray, row: usize, element: &Wire, out: &mut Vec<u8>) -> Result<(), String> {
    let values = lists.value(row);
    let dimensions = i32::from(!values.is_empty());
    out.extend(dimensions.to_be_bytes());
    out.extend(i32::from(0 < values.null_count()).to_be_bytes());
    out.extend(type_id(element).to_be_bytes());
    if values.is_empty() {
        return Ok(());
    }
    let length = i32::try_from(values.len()).map_err(|_| "a list has too many elements".to_owned())?;
    out.extend(length.to_be_bytes());
    out.extend(1_i32.to_be_bytes());
    (0..values.len()).try_for_each(|at| field(values.as_ref(), at, element, out))
}

/// The server's id of the type, which is the same in every database.
fn type_id(wire: &Wire) -> u32 {
    match wire {
        Wire::Bool => 16,
        Wire::Bytea => 17,
        Wire::Int8 => 20,
        Wire::Int2 => 21,
        Wire::Int4 => 23,
        Wire::Text => 25,
        Wire::Float4 => 700,
        Wire::Float8 => 701,
        Wire::Date => 1082,
        Wire::Time => 1083,
        Wire::Timestamp => 1114,
        Wire::TimestampTz => 1184,
        Wire::Interval => 1186,
        Wire::Numeric(_) => 1700,
        Wire::Uuid => 2950,
        Wire::Jsonb => 3802,
        Wire::Array(element) => type_id(element),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric_of(unscaled: i128, scale: u8) -> Vec<i16> {
        let mut out = Vec::new();
        numeric(unscaled, scale, &mut out);
        out.chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn numbers_are_groups_of_four_digits_around_the_point() {
        // Groups, weight, sign, scale, then the groups.
        assert_eq!(numeric_of(0, 2), [0, 0, 0, 2]);
        assert_eq!(numeric_of(1, 0), [1, 0, 0, 0, 1]);
        assert_eq!(numeric_of(-12_345_678, 3), [3, 1, 0x4000, 3, 1, 2345, 6780]);
        assert_eq!(numeric_of(5, 5), [1, -2, 0, 5, 5000]);
        assert_eq!(numeric_of(100_000_000, 4), [1, 1, 0, 4, 1]);
        assert_eq!(numeric_of(10_i128.pow(38) - 1, 38).len(), 4 + 10);
    }

    #[test]
    fn infinite_times_stay_infinite() {
        assert_eq!((date(i32::MAX), date(-i32::MAX), date(EPOCH_DAYS)), (Ok(i32::MAX), Ok(i32::MIN), Ok(0)));
        assert_eq!((timestamp(i64::MAX), timestamp(-i64::MAX)), (Ok(i64::MAX), Ok(i64::MIN)));
        assert!(timestamp(i64::MIN + 2).is_err());
    }
}
