//! What a change from one type to another does to values.
//!
//! Invariant: `Widening` is transitive and loses nothing, so a narrower query type may be written into a wider column
//! without a word; everything else is a difference that a person must have wanted.

use super::data_type::{DataType, Field, Scalar};

/// What happens to the values of one type in another, from harmless to impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CastClass {
    /// The same type.
    Identical,
    /// Every value is one of the wider type, and means the same.
    Widening,
    /// Every value converts there and back, but it is another kind of thing (a DATE as TIMESTAMP).
    Lossless,
    /// Some values lose digits, range or meaning, or the cast fails on them.
    Lossy,
    /// No cast exists.
    Incompatible,
}

/// Returns what a cast from `from` to `to` does.
pub fn cast_class(from: &DataType, to: &DataType) -> CastClass {
    if from == to {
        return CastClass::Identical;
    }
    match (from, to) {
        (DataType::Scalar(Scalar::Null), _) => CastClass::Widening,
        (DataType::Struct(from), DataType::Struct(to)) => struct_class(from, to),
        (DataType::List(from), DataType::List(to)) => cast_class(from, to),
        (DataType::Array(from, _), DataType::List(to)) => cast_class(from, to).max(CastClass::Lossless),
        (DataType::List(from), DataType::Array(to, _)) => cast_class(from, to).max(CastClass::Lossy),
        (DataType::Array(from, size), DataType::Array(to, other)) if size == other => cast_class(from, to),
        (DataType::Map(from_key, from_value), DataType::Map(to_key, to_value)) => {
            cast_class(from_key, to_key).max(cast_class(from_value, to_value))
        }
        (DataType::Enum(from), DataType::Enum(to)) => match from.iter().all(|value| to.contains(value)) {
            true => CastClass::Widening,
            false => CastClass::Lossy,
        },
        (DataType::Enum(_), DataType::Scalar(Scalar::Varchar)) => CastClass::Lossless,
        // Text takes everything and tells nothing about it any more; it gives back what can be read.
        (_, DataType::Scalar(Scalar::Varchar | Scalar::Variant)) => CastClass::Lossy,
        (DataType::Scalar(Scalar::Varchar), _) => CastClass::Lossy,
        _ => match (Number::of(from), Number::of(to)) {
            (Some(from), Some(to)) => from.class_in(to),
            _ => time_class(from, to),
        },
    }
}

/// Fields are matched by name, as DuckDB casts structs.
fn struct_class(from: &[Field], to: &[Field]) -> CastClass {
    let pairs = || {
        from.iter().filter_map(|field| {
            let same_name = |other: &&Field| other.name.eq_ignore_ascii_case(&field.name);
            Some((field, to.iter().find(same_name)?))
        })
    };
    let kept = pairs().count();
    if kept == 0 {
        return CastClass::Incompatible;
    }
    let worst = pairs().map(|(from, to)| cast_class(&from.data_type, &to.data_type)).max();
    let same_order =
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| from.name.eq_ignore_ascii_case(&to.name));
    let shape = if kept < from.len() {
        CastClass::Lossy
    } else if same_order {
        CastClass::Identical
    } else {
        CastClass::Lossless
    };
    worst.map_or(shape, |worst| worst.max(shape))
}

fn time_class(from: &DataType, to: &DataType) -> CastClass {
    use Scalar::{
        Bit, Blob, Boolean, Date, Json, Time, TimeNs, TimeTz, Timestamp, TimestampMs, TimestampNs, TimestampS,
        TimestampTz, Uuid,
    };
    let (DataType::Scalar(from), DataType::Scalar(to)) = (from, to) else { return number_and_boolean(from, to) };
    match (from, to) {
        (TimestampS, TimestampMs | Timestamp) | (TimestampMs, Timestamp) | (Time, TimeNs) => CastClass::Widening,
        (Date, Timestamp | TimestampS | TimestampMs | TimestampTz) => CastClass::Lossless,
        (Timestamp | TimestampS | TimestampMs, TimestampTz) | (TimestampTz, Timestamp) => CastClass::Lossless,
        (
            Timestamp | TimestampS | TimestampMs | TimestampNs | TimestampTz | Date,
            Date | Time | TimeTz | Timestamp | TimestampS | TimestampMs | TimestampNs | TimestampTz,
        ) if !(*from == Date && matches!(to, Time | TimeTz)) => CastClass::Lossy,
        (Time | TimeNs | TimeTz, Time | TimeNs | TimeTz) => CastClass::Lossy,
        (Uuid, Blob) | (Blob, Uuid | Bit) | (Bit, Blob) | (Json, _) => CastClass::Lossy,
        (Boolean, _) | (_, Boolean) => number_and_boolean(&DataType::Scalar(*from), &DataType::Scalar(*to)),
        _ => CastClass::Incompatible,
    }
}

fn number_and_boolean(from: &DataType, to: &DataType) -> CastClass {
    let is_boolean = |data_type: &DataType| *data_type == DataType::Scalar(Scalar::Boolean);
    if is_boolean(from) && Number::of(to).is_some() {
        CastClass::Lossless
    } else if Number::of(from).is_some() && is_boolean(to) {
        CastClass::Lossy
    } else {
        CastClass::Incompatible
    }
}

/// A numeric type by what it can hold exactly.
#[derive(Clone, Copy)]
enum Number {
    /// Whole numbers: `bits` of magnitude, with or without a sign.
    Whole { signed: bool, bits: u32 },
    /// Fixed point: digits before and after the point.
    Fixed { whole: u32, fraction: u32 },
    /// Floating point: whole numbers up to two to the power of `mantissa` are exact.
    Binary { mantissa: u32 },
    /// Whole numbers of any size.
    Unbounded,
}

impl Number {
    fn of(data_type: &DataType) -> Option<Self> {
        let scalar = match data_type {
            DataType::Scalar(scalar) => *scalar,
            DataType::Decimal { precision, scale } => {
                return Some(Number::Fixed { whole: u32::from(precision - scale), fraction: u32::from(*scale) });
            }
            _ => return None,
        };
        Some(match scalar {
            Scalar::TinyInt => Number::Whole { signed: true, bits: 7 },
            Scalar::SmallInt => Number::Whole { signed: true, bits: 15 },
            Scalar::Integer => Number::Whole { signed: true, bits: 31 },
            Scalar::BigInt => Number::Whole { signed: true, bits: 63 },
            Scalar::HugeInt => Number::Whole { signed: true, bits: 127 },
            Scalar::UTinyInt => Number::Whole { signed: false, bits: 8 },
            Scalar::USmallInt => Number::Whole { signed: false, bits: 16 },
            Scalar::UInteger => Number::Whole { signed: false, bits: 32 },
            Scalar::UBigInt => Number::Whole { signed: false, bits: 64 },
            Scalar::UHugeInt => Number::Whole { signed: false, bits: 128 },
            Scalar::Float => Number::Binary { mantissa: 24 },
            Scalar::Double => Number::Binary { mantissa: 53 },
            Scalar::Bignum => Number::Unbounded,
            _ => return None,
        })
    }

    fn class_in(self, to: Self) -> CastClass {
        let fits = match (self, to) {
            (Number::Whole { signed, bits }, Number::Whole { signed: to_signed, bits: to_bits }) => {
                bits <= to_bits && (to_signed || !signed)
            }
            (Number::Whole { bits, .. }, Number::Fixed { whole, .. }) => digits_of(bits) <= whole,
            (Number::Whole { bits, .. }, Number::Binary { mantissa }) => bits <= mantissa,
            (Number::Whole { .. }, Number::Unbounded) => true,
            (Number::Fixed { whole, fraction }, Number::Fixed { whole: to_whole, fraction: to_fraction }) => {
                whole <= to_whole && fraction <= to_fraction
            }
            (Number::Fixed { whole, fraction: 0 }, Number::Whole { signed: true, bits }) => whole < digits_of(bits),
            (Number::Fixed { whole, fraction: 0 }, Number::Binary { mantissa }) => whole < digits_of(mantissa),
            (Number::Fixed { fraction: 0, .. }, Number::Unbounded) => true,
            (Number::Binary { mantissa }, Number::Binary { mantissa: to_mantissa }) => mantissa <= to_mantissa,
            _ => false,
        };
        if fits { CastClass::Widening } else { CastClass::Lossy }
    }
}

/// Returns how many decimal digits the largest number of `bits` bits has.
fn digits_of(bits: u32) -> u32 {
    match bits {
        128.. => 39,
        _ => ((1_u128 << bits) - 1).ilog10() + 1,
    }
}
