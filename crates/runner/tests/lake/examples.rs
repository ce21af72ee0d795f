//! The example projects run as they are: the files of `examples/`, with a little data of the same shape where they
//! read some.

use std::path::Path;

use expect_test::expect;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, only, planned, query, run};

/// Returns a copy of an example project.
fn example(name: &str) -> Folder {
    let folder = Folder::new("");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    copy(&from, folder.path());
    folder
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // What a reader of the example has made there by running it is not part of it.
        if name.starts_with('.') || (name == "data" && path.is_dir()) {
            continue;
        }
        if path.is_dir() {
            std::fs::create_dir_all(to.join(name)).unwrap();
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn errors(folder: &Folder) -> Vec<String> {
    folder.check().into_iter().filter(|line| line.starts_with("Error") || line.starts_with("Warning")).collect()
}

#[test]
fn the_quickstart_checks_clean_and_runs_green() {
    let folder = example("quickstart");
    assert_eq!(folder.check(), Vec::<String>::new());
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT customer FROM best_customers LIMIT 1", None), ["edsger"]);
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
}

#[test]
fn the_windmill_folder_checks_without_errors_and_runs_unchanged() {
    let folder = example("windmill");
    assert_eq!(errors(&folder), Vec::<String>::new());
    expect![[r#"
        Info P125 pipelines/audit.sql:2 `on` is parsed and checked, but this version does not act on it yet
        Info P127 pipelines/customers.sql:2 `on data_upload` never starts a run here
        Info P125 pipelines/customers.sql:3 `on` is parsed and checked, but this version does not act on it yet
        Info P127 pipelines/customers.sql:4 `warn` is read as `ignore`: only columns that the table has are written
        Info P125 pipelines/customers_history.sql:2 `on` is parsed and checked, but this version does not act on it yet
        Info P125 pipelines/events.sql:2 `on` is parsed and checked, but this version does not act on it yet
        Info P127 pipelines/events.sql:8 `on amqp` never starts a run here
        Info P127 pipelines/events.sql:9 a Windmill resource is configuration, not an asset
        Info P127 pipelines/events.sql:10 a dbt model is not an asset here
        Info P125 pipelines/orders.sql:2 `on` is parsed and checked, but this version does not act on it yet
        Info P125 pipelines/orders_daily.sql:2 `on` is parsed and checked, but this version does not act on it yet
        Info P127 pipelines/orders_daily.sql:3 `format=` has no meaning: each kind of partition has one form of identity
        Info P125 pipelines/revenue_daily.sql:2 `trigger` is parsed and checked, but this version does not act on it yet
        Info P125 pipelines/revenue_daily.sql:3 `debounce` is parsed and checked, but this version does not act on it yet
        Info P215 pipelines/revenue_daily.sql:18 a function on the column reads every file of the table"#]].assert_eq(&folder.check().join("\n"));
    let pintail = folder.open();
    let told = run(&pintail, &at("2026-05-16"));
    told.assert_good();
    expect![[r#"
        audit: Materialized rows None -0 +1
        customers: Materialized rows Some(3) -0 +3
        customers_history: Materialized rows Some(3) -0 +3
        events 2026-05-16: Materialized rows Some(2) -0 +2
        orders: Materialized rows Some(4) -0 +4
        orders_daily 2026-05-16: Materialized rows Some(2) -0 +2
        revenue_daily 2026-05-16: Materialized rows Some(1) -0 +1"#]]
    .assert_eq(&told.text());
    run(&pintail, &at("2026-05-17")).assert_good();
    expect![[r#"
        2026-05-16|2026-05-16 00:00:00+00:00|2026-05-17 00:00:00+00:00|true|2|52.50
        2026-05-17|2026-05-17 00:00:00+00:00|2026-05-18 00:00:00+00:00|true|1|7.25"#]]
    .assert_eq(
        &query(
            &pintail,
            "SELECT day, day_start, day_end, read_at IS NOT NULL, orders, revenue FROM revenue_daily ORDER BY day",
            None,
        )
        .join("\n"),
    );
    assert_eq!(
        query(
            &pintail,
            "SELECT (SELECT count(*) FROM orders_daily), (SELECT count(*) FROM events), (SELECT max(orders) FROM audit)",
            None
        ),
        ["3|3|4"]
    );
}

const FLIGHT_DATA: &str = "//- data/airlines.csv
carrier,name
UA,United Air Lines Inc.
B6,JetBlue Airways
//- data/airports.csv
faa,name,lat,lon,alt,tz,dst,tzone
IAH,George Bush Intercontinental,29.984433,-95.341442,97,-6,A,America/Chicago
//- data/planes.csv
tailnum,year,type,manufacturer,model,engines,seats,speed,engine
N14228,1999,Fixed wing multi engine,BOEING,737-824,2,149,NA,Turbo-fan
N24211,NA,Fixed wing multi engine,BOEING,737-824,2,149,NA,Turbo-fan
//- data/weather.csv
origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour
EWR,2013,1,1,5,39.02,26.06,59.37,270,10.35702,NA,0,1012,10,2013-01-01T10:00:00Z
LGA,2013,1,1,23,39.02,26.96,61.63,250,25.05546,NA,0,NA,10,2013-01-02T04:00:00Z
//- data/flights.csv
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,1,1,533,2359,4,850,830,20,B6,1714,N24211,LGA,BQN,227,1416,23,59,2013-01-02T04:00:00Z
2013,1,2,NA,1630,NA,NA,1815,NA,UA,4308,NA,EWR,IAH,NA,1400,16,30,2013-01-02T21:00:00Z
";

#[test]
fn the_flights_check_clean_run_green_and_refuse_the_broken_report() {
    let folder = example("flights");
    folder.write(FLIGHT_DATA);
    assert_eq!(errors(&folder), Vec::<String>::new());
    let flights = folder.path().join("pipelines/raw/flights.sql");
    let text = std::fs::read_to_string(&flights).unwrap();
    // The only thing that does not fit three rows is how many there should be.
    std::fs::write(&flights, text.replace("row_count 300000..400000", "row_count 3..3")).unwrap();
    let pintail = folder.open();
    let raw = run(&pintail, &only("tag:raw"));
    raw.assert_good();
    for day in ["2013-01-01", "2013-01-02"] {
        run(&pintail, &PlanRequest { select: Some("flights_daily".to_owned()), ..at(day) }).assert_good();
    }
    assert_eq!(
        query(&pintail, "SELECT flight_date, count(*) FROM flights_daily GROUP BY 1 ORDER BY 1", None),
        ["2013-01-01|2", "2013-01-02|1"]
    );
    run(&pintail, &only("tag:report")).assert_good();
    run(&pintail, &PlanRequest { select: Some("monthly_traffic".to_owned()), ..at("2013-01") }).assert_good();
    let state = query(
        &pintail,
        "SELECT 'delays', carrier, flights, cancelled FROM carrier_delays UNION ALL SELECT 'route', origin || dest, flights, miles FROM routes
         UNION ALL SELECT 'weather', weather, flights, 0 FROM weather_impact UNION ALL SELECT 'month', origin, flights, cancelled FROM monthly_traffic
         UNION ALL SELECT 'age', age_from::VARCHAR, flights, planes FROM plane_ages UNION ALL SELECT 'busy', destination, flights, 0 FROM busiest_routes ORDER BY ALL",
        None,
    );
    expect![[r#"
        age|10|1|1
        busy|George Bush Intercontinental|2|0
        busy|NULL|1|0
        delays|B6|1|0
        delays|UA|2|1
        month|EWR|2|1
        month|LGA|1|0
        route|EWRIAH|2|1400
        route|LGABQN|1|1416
        weather|fair|1|0
        weather|windy|1|0"#]]
    .assert_eq(&state.join("\n"));
    drop(pintail);
    std::fs::copy(
        folder.path().join("broken/carrier_delays.sql"),
        folder.path().join("pipelines/reports/carrier_delays.sql"),
    )
    .unwrap();
    let told = folder.run(&only("reports/carrier_delays"));
    assert_eq!(told.failure("reports/carrier_delays").code.as_str(), "P510");
    assert_eq!(folder.query("SELECT max(on_time_share) <= 1 FROM carrier_delays"), ["true"]);
}
