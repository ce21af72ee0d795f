//! What every backend of the store must do. A backend's test file implements [`Backend`] and calls `run_on!`.

pub mod backfills;
pub mod healing;
pub mod replay;
pub mod runs;
pub mod sample;
pub mod sharing;
pub mod slices;
pub mod writes;

use pintail_store::Store;

/// A place for one store.
pub trait Backend {
    /// Makes an empty place.
    async fn fresh() -> Self;

    /// Opens the store for the project `shop`; each call stands for another process.
    async fn open(&self) -> Store;
}

/// Runs every case of the suite on one backend.
macro_rules! run_on {
    ($backend:ident) => {
        suite::run_on! { $backend,
            runs {
                a_run_is_read_back_with_steps_attempts_and_tests,
                a_thousand_steps_are_planned_at_once,
                runs_are_listed_newest_first,
                running_runs_tell_their_owner,
                a_run_ends_once,
                a_run_with_open_steps_cannot_succeed,
                a_crashed_run_leaves_nothing_open,
                a_cancelled_run_cancels_what_is_open,
                an_ended_step_takes_no_new_attempt,
                a_committed_attempt_cannot_fail,
                log_lines_keep_their_order,
            }
            writes {
                a_success_is_recorded_with_everything_that_belongs_to_it,
                a_success_recorded_twice_is_recorded_once,
                a_success_of_an_unknown_attempt_writes_nothing,
                an_unchanged_slice_tells_nobody,
                a_failure_that_is_retried_keeps_the_step_running,
                a_cancelled_attempt_leaves_no_materialization,
                sample_rows_are_bounded,
                schema_versions_are_kept_when_they_differ,
                an_outbox_row_is_delivered_once,
                assets_outside_lakes_have_no_snapshot,
            }
            slices {
                a_failure_never_downgrades_a_version,
                a_failure_is_hidden_by_a_later_version,
                the_newest_snapshot_is_current_whatever_order_rows_came_in,
                an_unchanged_slice_keeps_its_version_with_newer_inputs,
                a_rollback_of_the_whole_table_makes_its_slices_what_they_were,
                a_slice_that_only_failed_is_visible,
                history_is_newest_first_with_failures,
                a_hundred_thousand_assets_can_be_asked_for,
                projects_do_not_see_each_other,
            }
            healing {
                a_commit_that_was_not_recorded_is_healed_once,
                stamps_of_attempts_that_the_store_never_knew_are_not_announced,
                a_stamp_wins_over_a_recorded_failure,
                a_failure_after_the_proof_changes_nothing,
                the_recorder_completes_a_row_that_was_healed_meanwhile,
                a_running_attempt_is_left_to_its_process,
                a_crashed_run_ends_proven_attempts_as_committed,
                several_commits_of_one_attempt_are_summed_up,
                a_rebuilt_state_equals_the_old_one,
                a_rebuild_announces_nothing,
                forgetting_a_lake_keeps_failures_other_lakes_and_other_assets,
                a_cursor_never_moves_back,
            }
            replay {
                a_text_is_found_by_its_hash_and_stored_once,
                the_last_runs_of_each_asset_are_kept_however_old,
                everything_that_finished_lately_is_kept_failures_too,
                the_partitions_of_one_run_count_as_one,
            }
            backfills {
                jobs_are_numbered_in_their_project,
                of_two_that_take_a_job_up_one_gets_it,
                only_a_running_job_can_be_asked_to_stop,
                only_partitions_that_left_the_queue_have_rows,
                what_a_crash_left_in_work_is_told_with_its_evidence,
                durations_are_those_of_recorded_materializations,
            }
            sharing {
                two_processes_with_many_workers_wait_and_lose_nothing,
                two_processes_that_heal_at_once_announce_once,
                of_two_deliverers_one_goes_on,
            }
        }
    };
    ($backend:ident, $($area:ident { $($case:ident,)* })*) => {
        $(
            mod $area {
                use super::suite::Backend;
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $case() {
                        let backend = super::$backend::fresh().await;
                        super::suite::$area::$case(&backend).await;
                    }
                )*
            }
        )*
    };
}
pub(crate) use run_on;
