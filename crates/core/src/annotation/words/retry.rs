//! `retry`: how often a failed attempt is repeated.

use std::time::Duration;

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{OptionSpec, Repeats, Runtime, Shape, Word};
use crate::annotation::spec::Retry;
use crate::annotation::values::{read_choice, read_count, read_duration};
use crate::diagnostic::Code;
use crate::source::Located;

/// The pause before the first retry when the line gives none.
const DEFAULT_DELAY: Duration = Duration::from_secs(10);

/// More attempts than this are a mistake.
const MOST_TIMES: u64 = 100;

pub const WORD: Word = Word {
    name: "retry",
    aliases: &[],
    syntax: "retry <times> [<delay>] [backoff=constant|exponential]",
    doc: "Repeats a failed attempt up to `<times>` times, with a pause of `<delay>` (10s when absent) before the first. \
          Only faults that may pass are retried: a broken query or a failed test is not.",
    example: "retry 3 30s backoff=exponential",
    options: &[OptionSpec {
        name: "backoff",
        value: "constant|exponential",
        doc: "Whether each pause is as long as the first (`constant`, the default) or twice the one before.",
    }],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[Shape::Number],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let backoffs = [("constant", false), ("exponential", true)];
    let exponential = args.option_as("backoff", draft, |value| read_choice(value, "a backoff", &backoffs));
    let times_value = args.require(line, "a number of retries")?;
    let times = read_count(&times_value, "a number of retries")?;
    if times > MOST_TIMES {
        let message = format!("{times} retries are too many; at most {MOST_TIMES}");
        return Err(Problem::new(Code::BAD_VALUE, times_value.span, message));
    }
    let delay = match args.next() {
        Some(value) => read_duration(&value)?,
        None => DEFAULT_DELAY,
    };
    let times = u32::try_from(times).expect("at most 100");
    let retry = Retry { times, delay, exponential: exponential.unwrap_or(false) };
    draft.header.retry = Some(Located { value: retry, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
