//! Subjects: the bucket that each falls into, and DIDs of tokens.
//!
//! A bucket is a plain number that queries name to read fewer files; it never changes for a subject.

/// How many buckets there are.
pub const BUCKETS: u32 = 256;

/// Returns the bucket of `subject`, 0 to 255: FNV-1a over its UTF-8 bytes, 32 bits wide, modulo 256.
pub fn subject_bucket(subject: &str) -> i32 {
    let hash = subject.bytes().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    i32::try_from(hash % BUCKETS).expect("a bucket is below 256")
}

/// Returns SQL for the bucket of the text that the SQL `subject` gives; slow, for whoever checks buckets.
pub fn subject_bucket_sql(subject: &str) -> String {
    format!(
        "(list_reduce(
            [2166136261::UBIGINT] || list_transform(
                regexp_extract_all(hex(encode({subject})), '..'), _pt_byte -> ('0x' || _pt_byte)::UBIGINT),
            (_pt_hash, _pt_byte) -> xor(_pt_hash, _pt_byte) * 16777619 % 4294967296
        ) % {BUCKETS})::INTEGER"
    )
}

/// A token of an ERC-721 contract, as a DID names it: `did:erc721:<chain>:<contract>:<token>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenDid<'a> {
    /// The id of the chain.
    pub chain_id: u64,
    /// The address of the contract, as written.
    pub contract: &'a str,
    /// The id of the token.
    pub token_id: &'a str,
}

impl<'a> TokenDid<'a> {
    /// Reads a DID, or `None` for any other text; the older form `did:nft:<chain>:<contract>_<token>` means the same.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (chain_id, contract, token_id) = match text.strip_prefix("did:nft:") {
            Some(rest) => {
                let (chain_id, token) = rest.split_once(':')?;
                let (contract, token_id) = token.split_once('_')?;
                (chain_id, contract, token_id)
            }
            None => {
                let (chain_id, rest) = text.strip_prefix("did:erc721:")?.split_once(':')?;
                let (contract, token_id) = rest.split_once(':')?;
                (chain_id, contract, token_id)
            }
        };
        let digits = contract.strip_prefix("0x")?;
        let is_address = digits.len() == 40 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_token = !token_id.is_empty() && token_id.bytes().all(|digit| digit.is_ascii_digit());
        match is_address && is_token {
            true => Some(Self { chain_id: chain_id.parse().ok()?, contract, token_id }),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pintail_core::sql::Literal;
    use pintail_engine::{Instance, InstanceOptions};

    use super::*;

    #[test]
    fn buckets_are_those_of_the_published_vectors() {
        let did = "did:erc721:137:0xbA5738a18d83D41847dfFbDC6101d37C69c9B0cF";
        assert_eq!(subject_bucket(""), 197);
        assert_eq!(subject_bucket(&format!("{did}:1")), 219);
        assert_eq!(subject_bucket(&format!("{did}:2")), 110);
    }

    #[test]
    fn sql_comes_to_the_same_buckets() {
        let instance = Instance::open(InstanceOptions::default()).unwrap();
        let session = instance.session().unwrap();
        for subject in ["", "a", "did:ethr:1:0x0aF", "Größe \u{1f697}\t"] {
            let sql = format!("SELECT {}", subject_bucket_sql(&Literal::new(subject).to_string()));
            let bucket: i32 = session.one("ask for the bucket", &sql, |row| row.get(0)).unwrap();
            assert_eq!(bucket, subject_bucket(subject), "{subject}");
        }
    }

    #[test]
    fn both_forms_of_a_did_name_one_token() {
        let contract = "0xbA5738a18d83D41847dfFbDC6101d37C69c9B0cF";
        let token = Some(TokenDid { chain_id: 137, contract, token_id: "42" });
        assert_eq!(TokenDid::parse(&format!("did:erc721:137:{contract}:42")), token);
        assert_eq!(TokenDid::parse(&format!("did:nft:137:{contract}_42")), token);
        let others = ["", "did:erc721:137:0x12:4", "did:ethr:137:0x12", "did:erc721:x:0x12:4"];
        for text in others.map(str::to_owned).into_iter().chain([format!("did:erc721:137:{contract}:")]) {
            assert_eq!(TokenDid::parse(&text), None, "{text}");
        }
    }
}
