//! Events as JSON: what is sent on, and what the log keeps.

use serde_json::value::RawValue;

use super::attributes::json_text;
use super::event::{Event, Payload};

impl Event {
    /// Returns the event in structured mode; reading it again gives an equal event. A payload in the blob store is left
    /// out: who needs it reads it there.
    pub fn to_json(&self) -> String {
        let mut members: Vec<(&str, String)> = vec![
            ("specversion", json_text("1.0")),
            ("id", json_text(&self.id)),
            ("source", json_text(&self.source)),
            ("type", json_text(&self.kind)),
        ];
        let optional = [
            ("subject", self.subject.clone()),
            ("time", self.time.map(|time| time.to_rfc3339())),
            ("datacontenttype", self.data_content_type.clone()),
            ("dataversion", self.data_version.clone()),
            ("producer", self.producer.clone()),
        ];
        members.extend(optional.into_iter().filter_map(|(name, value)| Some((name, json_text(&value?)))));
        members.extend(self.extras.iter().map(|(name, value)| (name.as_str(), value.clone())));
        match &self.data {
            Payload::None | Payload::Stored { .. } => {}
            Payload::Json(text) => members.push(("data", text.clone())),
            Payload::Base64(text) => members.push(("data_base64", json_text(text))),
        }
        let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let json = format!("{{{}}}", members.join(","));
        debug_assert!(serde_json::from_str::<&RawValue>(&json).is_ok(), "{json}");
        json
    }
}
