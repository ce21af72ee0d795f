//! Decoding a window on several threads.
//!
//! Invariant: rows come out in the order in which they went in, whatever the threads do; a decoder that panics on a row,
//! while it fetches the row's payload or while it decodes it, loses that row to the dead letters and no other.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;

use crate::decoder::{Dead, Decoded, Decoder, ResolveError};

/// What a window came to.
#[derive(Debug, Default)]
pub struct DecodedWindow {
    /// The batches per target, in the order of the targets.
    pub rows: Vec<Vec<RecordBatch>>,
    /// What could not be decoded, with the batch and the row.
    pub dead: Vec<(usize, Dead)>,
}

/// Decodes `batches`, which have the columns that the decoder reads.
pub fn decode(
    decoder: &dyn Decoder,
    batches: &[RecordBatch],
    now_micros: i64,
    threads: NonZeroUsize,
) -> Result<DecodedWindow, ResolveError> {
    let share = batches.len().div_ceil(threads.get()).max(1);
    let decode_share = |share: &[RecordBatch]| -> Result<Vec<Decoded>, ResolveError> {
        share.iter().map(|batch| decode_batch(decoder, batch, 0, now_micros)).collect()
    };
    let shares: Vec<Result<Vec<Decoded>, ResolveError>> = std::thread::scope(|scope| {
        let running: Vec<_> = batches.chunks(share).map(|share| scope.spawn(move || decode_share(share))).collect();
        // A panic of the decoder is caught inside; any other is a fault that must not pass for an empty share.
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut window = DecodedWindow { rows: decoder.targets().iter().map(|_| Vec::new()).collect(), dead: Vec::new() };
    let mut index = 0;
    for share in shares {
        for decoded in share? {
            for (target, rows) in window.rows.iter_mut().zip(decoded.rows) {
                if 0 < rows.num_rows() {
                    target.push(rows);
                }
            }
            window.dead.extend(decoded.dead.into_iter().map(|dead| (index, dead)));
            index += 1;
        }
    }
    Ok(window)
}

/// So many payloads outside the table are in memory at once on each thread; each may have some ten megabytes.
const ELSEWHERE: usize = 16;

/// Decodes `batch`, whose first row is row `first` of what was read. Payloads are fetched and decoded part by part; what a
/// part holds of them is gone before the next one is fetched.
fn decode_batch(
    decoder: &dyn Decoder,
    batch: &RecordBatch,
    first: usize,
    now_micros: i64,
) -> Result<Decoded, ResolveError> {
    let elsewhere = match unless_panic(|| decoder.payloads_elsewhere(batch)) {
        Ok(elsewhere) => elsewhere,
        Err(panic) => {
            return isolate(decoder, batch, first, &panic, |half, first| {
                decode_batch(decoder, half, first, now_micros)
            });
        }
    };
    let mut decoded = Decoded::default();
    for (start, part) in parts(batch, &elsewhere) {
        append(&mut decoded, decode_part(decoder, &part, first + start, now_micros)?);
    }
    Ok(decoded)
}

/// Fetches the payloads of one part and decodes it.
fn decode_part(
    decoder: &dyn Decoder,
    part: &RecordBatch,
    first: usize,
    now_micros: i64,
) -> Result<Decoded, ResolveError> {
    match unless_panic(|| decoder.resolve(part.clone())) {
        Ok(resolved) => decode_rows(decoder, &resolved?, first, now_micros),
        Err(panic) => {
            isolate(decoder, part, first, &panic, |half, first| decode_part(decoder, half, first, now_micros))
        }
    }
}

fn decode_rows(
    decoder: &dyn Decoder,
    batch: &RecordBatch,
    first: usize,
    now_micros: i64,
) -> Result<Decoded, ResolveError> {
    match unless_panic(|| decoder.decode(batch, now_micros)) {
        Ok(mut decoded) => {
            decoded.dead.iter_mut().for_each(|dead| dead.row += first);
            Ok(decoded)
        }
        Err(panic) => {
            isolate(decoder, batch, first, &panic, |half, first| decode_rows(decoder, half, first, now_micros))
        }
    }
}

/// Runs a piece of a decoder; the error is what it panicked with, in words.
fn unless_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words_of(&*panic))
}

/// After a panic on `batch`: its halves are done again one after the other, and a row that is alone with its panic is dead.
fn isolate(
    decoder: &dyn Decoder,
    batch: &RecordBatch,
    first: usize,
    panic: &str,
    again: impl Fn(&RecordBatch, usize) -> Result<Decoded, ResolveError>,
) -> Result<Decoded, ResolveError> {
    let rows = batch.num_rows();
    if rows <= 1 {
        let reason = format!("the decoder `{}` failed on this row: {panic}", decoder.name());
        metrics::counter!("pintail_consumer_decoder_panics_total", "decoder" => decoder.name().to_owned()).increment(1);
        let dead = Dead { row: first, part: None, reason, raw: json_of(batch), is_unread: true };
        return Ok(Decoded { rows: Vec::new(), dead: vec![dead] });
    }
    let middle = rows / 2;
    let mut decoded = again(&batch.slice(0, middle), first)?;
    append(&mut decoded, again(&batch.slice(middle, rows - middle), first + middle)?);
    Ok(decoded)
}

/// Cuts `batch` so that no part has more than [`ELSEWHERE`] of the rows `elsewhere`; returns each part with its first row.
fn parts(batch: &RecordBatch, elsewhere: &[usize]) -> Vec<(usize, RecordBatch)> {
    let mut starts: Vec<usize> = elsewhere.iter().copied().skip(ELSEWHERE).step_by(ELSEWHERE).collect();
    starts.insert(0, 0);
    let ends = starts.iter().copied().skip(1).chain([batch.num_rows()]);
    starts.iter().zip(ends).map(|(start, end)| (*start, batch.slice(*start, end - start))).collect()
}

/// Puts the rows of `rest` behind those of `decoded`.
fn append(decoded: &mut Decoded, rest: Decoded) {
    decoded.dead.extend(rest.dead);
    if decoded.rows.is_empty() {
        decoded.rows = rest.rows;
        return;
    }
    for (rows, more) in decoded.rows.iter_mut().zip(&rest.rows) {
        if more.num_rows() == 0 {
            continue;
        }
        let schema = rows.schema();
        *rows = arrow::compute::concat_batches(&schema, [&*rows, more])
            .expect("a decoder gives every batch of a target the same columns");
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// Returns the row as JSON: without the decoder nobody knows which column holds the payload.
fn json_of(row: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
    let written = writer.write(row).and_then(|()| writer.finish());
    match written {
        Ok(()) => writer.into_inner().trim_ascii_end().to_vec(),
        Err(error) => format!("the row cannot be shown: {error}").into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};

    use super::{RecordBatch, parts};

    #[test]
    fn a_batch_is_cut_so_that_few_payloads_are_in_memory_at_once() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from_iter_values(0..100))]).unwrap();
        let cut = |elsewhere: &[usize]| -> Vec<(usize, usize)> {
            parts(&batch, elsewhere).into_iter().map(|(first, part)| (first, part.num_rows())).collect()
        };
        assert_eq!(cut(&[]), [(0, 100)]);
        assert_eq!(cut(&(0..16).collect::<Vec<_>>()), [(0, 100)]);
        // The seventeenth begins the second part, and the thirty-third the third.
        let every_other: Vec<usize> = (0..40).map(|number| number * 2).collect();
        assert_eq!(cut(&every_other), [(0, 32), (32, 32), (64, 36)]);
    }
}
