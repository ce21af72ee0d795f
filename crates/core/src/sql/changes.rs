//! placeholder until sqltext lands
/// x
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ChangeSet;
impl ChangeSet {
    /// x
    pub fn parse(_: &str) -> Self { Self }
}
