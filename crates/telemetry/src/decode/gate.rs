//! Which subjects have signals: those of one contract, or all.

use crate::subject::TokenDid;

/// Lets through the signals of the tokens of one contract only; those of others are no vehicles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VehicleGate {
    /// The id of the chain.
    pub chain_id: u64,
    /// The address of the contract; compared without case, since case is a checksum only.
    pub contract: String,
}

impl VehicleGate {
    /// Returns whether `subject` is a token of the contract.
    pub fn admits(&self, subject: &str) -> bool {
        TokenDid::parse(subject)
            .is_some_and(|token| token.chain_id == self.chain_id && token.contract.eq_ignore_ascii_case(&self.contract))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_other_chains_and_contracts_are_kept_out() {
        let contract = "0xbA5738a18d83D41847dfFbDC6101d37C69c9B0cF";
        let gate = VehicleGate { chain_id: 137, contract: contract.to_lowercase() };
        assert!(gate.admits(&format!("did:erc721:137:{contract}:1")));
        assert!(!gate.admits(&format!("did:erc721:1:{contract}:1")));
        assert!(!gate.admits("did:erc721:137:0x5e31bBc786D7bEd95216383787deA1ab0f1c1897:1"));
        assert!(!gate.admits("vehicle-7"));
    }
}
