//! The events that decoders know: the names that the DIMO network publishes for its default definitions.

/// The names.
pub const NAMES: [&str; 7] = [
    "behavior.harshBraking",
    "behavior.harshAcceleration",
    "behavior.harshCornering",
    "behavior.extremeBraking",
    "safety.collision",
    "security.engineBlock",
    "security.engineUnblock",
];

/// Returns the known name that equals `name`.
pub fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}
