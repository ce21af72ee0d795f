//! Upkeep of a table with ten thousand small files, beside the same merge by hand.
//!
//! The files are made by hand on both sides, a hundred commits of a hundred partitions each, and are gone after one
//! measurement; so each side is measured once.

use std::fmt::Write as _;
use std::time::Duration;

use super::Bench;
use super::lake::Project;

const COMMITS: usize = 100;
const PARTITIONS: usize = 100;

/// Makes the files twice, merges them on both sides, and renders what that took.
pub fn report(bench: &Bench<'_>) -> anyhow::Result<String> {
    let ours = with_files(bench, "upkeep-ours")?;
    let ours_took = ours.time(&["maintain"])?;
    let plain = with_files(bench, "upkeep-plain")?;
    // As upkeep bounds what one merge writes, so does this.
    let merge = "CALL ducklake_merge_adjacent_files('lake', 't', max_compacted_files => 1000);\n";
    let plain_took = plain.time_plain(merge)?;
    Ok(render(ours_took, plain_took))
}

fn with_files(bench: &Bench<'_>, name: &str) -> anyhow::Result<Project> {
    let project = Project::new(bench, name)?;
    project.script("other", "-- materialize ducklake://main/other\nSELECT 1 AS x\n")?;
    project.run(&["run"])?;
    let mut statements = "CREATE TABLE lake.main.t (part INTEGER, i BIGINT, note VARCHAR);\n\
                          ALTER TABLE lake.main.t SET PARTITIONED BY (part);\n"
        .to_owned();
    for commit in 0..COMMITS {
        writeln!(
            statements,
            "INSERT INTO lake.main.t SELECT i % {PARTITIONS}, i + {commit}, 'note ' || i FROM range(1000) r(i);"
        )?;
    }
    project.time_plain(&statements)?;
    Ok(project)
}

fn render(ours: Duration, plain: Duration) -> String {
    let (ours, plain) = (ours.as_secs_f64(), plain.as_secs_f64());
    format!(
        "maintain-10k-files: {} files into {PARTITIONS}: ours {ours:.2} s (with leases, holds and proof), plain {plain:.2} s, \
         ratio {:.2}\n",
        COMMITS * PARTITIONS,
        ours / plain
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn both_sides_and_their_ratio_are_told() {
        expect![[r#"
            maintain-10k-files: 10000 files into 100: ours 3.00 s (with leases, holds and proof), plain 2.00 s, ratio 1.50
        "#]]
        .assert_eq(&render(Duration::from_secs(3), Duration::from_secs(2)));
    }
}
