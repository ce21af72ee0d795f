//! Bodies: bounded one by one and together, and not for ever.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use tokio::sync::SemaphorePermit;

use super::Shared;
use super::answer::Refused;

/// The unit in which room is counted.
pub(super) const KIB: usize = 1_024;

/// A body that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(30);

/// Reads a body; its room is taken until the permit goes.
pub(super) async fn read<'a>(
    shared: &'a Shared,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, SemaphorePermit<'a>), Refused> {
    let limit = shared.options.body_limit;
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| limit < length) {
        return Err(Refused::too_large(limit));
    }
    // A body of unknown length may be as long as any.
    let wanted = u32::try_from(length.unwrap_or(limit) / KIB + 1).unwrap_or(u32::MAX);
    let mut room = shared.room.try_acquire_many(wanted).map_err(|_| Refused::busy())?;
    match tokio::time::timeout(LONGEST, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => {
            // What was taken for a body that turned out short is free for others while this one is made durable.
            let used = room.split(bytes.len() / KIB + 1).unwrap_or(room);
            Ok((bytes, used))
        }
        Ok(Err(error)) if is_too_long(&error) => Err(Refused::too_large(limit)),
        Ok(Err(error)) => Err(Refused::broken_off(&error)),
        Err(_) => Err(Refused::too_slow(LONGEST)),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
