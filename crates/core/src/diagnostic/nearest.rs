//! Near-name search for "did you mean".

/// Returns the candidate nearest to `word` when it is near enough to be a slip of the hand: at most one edit per three
/// characters (at least one), transpositions counted as one, case ignored.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let budget = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= budget)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let words = ["materialize", "partitioned", "on"];
        assert_eq!(nearest("materialise", words), Some("materialize"));
        assert_eq!(nearest("Paritioned", words), Some("partitioned"));
        assert_eq!(nearest("no", words), Some("on"));
        assert_eq!(nearest("colour", words), None);
    }
}
