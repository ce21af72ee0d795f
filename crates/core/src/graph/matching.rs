//! Which assets cover which: all globs of a store or volume are matched at once, so that a project with many globs and
//! many keys stays linear. What a glob means is said once, in `asset`.

use std::collections::{BTreeMap, HashMap};

use globset::{Glob, GlobSetBuilder};

use crate::asset::Asset;

/// For each glob the assets of the other side that it covers, in canonical order; itself excluded.
pub(super) type Covered<'a> = HashMap<&'a Asset, Vec<&'a Asset>>;

/// Returns which of `assets` each glob among `patterns` covers.
pub(super) fn covered<'a>(
    patterns: impl Iterator<Item = &'a Asset>,
    assets: impl Iterator<Item = &'a Asset>,
) -> Covered<'a> {
    let mut places: BTreeMap<FilePlace<'a>, Place<'a>> = BTreeMap::new();
    for pattern in patterns {
        if let (Some(place), Some(glob)) = (FilePlace::of(pattern), pattern.path_glob()) {
            places.entry(place).or_default().globs.push((pattern, glob));
        }
    }
    for asset in assets {
        if let Some(place) = FilePlace::of(asset).and_then(|place| places.get_mut(&place)) {
            place.assets.push(asset);
        }
    }
    let mut covered = Covered::new();
    for place in places.values() {
        place.match_all(&mut covered);
    }
    for assets in covered.values_mut() {
        assets.sort();
        assets.dedup();
    }
    covered
}

/// Where a file lies; a glob never reaches out of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FilePlace<'a> {
    Store(&'a str),
    Volume(&'a str),
}

impl<'a> FilePlace<'a> {
    fn of(asset: &'a Asset) -> Option<Self> {
        match asset {
            Asset::Object { store, .. } => Some(FilePlace::Store(store)),
            Asset::Volume { volume, .. } => Some(FilePlace::Volume(volume)),
            Asset::Lake { .. } | Asset::Datatable { .. } => None,
        }
    }
}

/// The two sides in one store or volume.
#[derive(Default)]
struct Place<'a> {
    globs: Vec<(&'a Asset, Glob)>,
    assets: Vec<&'a Asset>,
}

impl<'a> Place<'a> {
    fn match_all(&self, covered: &mut Covered<'a>) {
        let mut set = GlobSetBuilder::new();
        for (_, glob) in &self.globs {
            set.add(glob.clone());
        }
        let set =
            set.build().expect("each glob was compiled before, and a set of them has no limit that scripts reach");
        for asset in &self.assets {
            let path = asset.path_for_globs().expect("only files have a place");
            for matched in set.matches(&path) {
                let pattern = self.globs[matched].0;
                if pattern != *asset {
                    covered.entry(pattern).or_default().push(asset);
                }
            }
        }
    }
}
