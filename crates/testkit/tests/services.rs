//! The servers that `cargo xtask test` starts: each test has its own part of them, and one of its own can be ended.

use pintail_testkit::services::{database, object_prefix, private_postgres};

#[test]
fn every_test_has_a_database_of_its_own() {
    let (first, second) = (database(), database());
    first.sql("CREATE TABLE t (a int)");
    first.sql("INSERT INTO t VALUES (1), (NULL)");
    assert_eq!(first.sql("SELECT a, a IS NULL FROM t ORDER BY a"), "1|f\n|t");
    assert_eq!(second.sql("SELECT count(*) FROM information_schema.tables WHERE table_name = 't'"), "0");
    let name = first.name.clone();
    drop(first);
    assert_eq!(second.sql(&format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'")), "0");
}

#[test]
fn no_two_prefixes_of_the_bucket_are_one() {
    let (first, second) = (object_prefix(), object_prefix());
    assert!(first.url.starts_with("s3://"), "{first:?}");
    assert_ne!(first.url, second.url);
}

#[test]
fn a_server_of_ones_own_keeps_its_data_over_a_crash() {
    let mut server = private_postgres();
    let database = server.database();
    database.sql("CREATE TABLE t AS SELECT 7 AS a");
    database.sql("CHECKPOINT");
    server.kill();
    server.resume().expect("it starts again");
    assert_eq!(database.sql("SELECT a FROM t"), "7");
    server.stop();
}
