//! Exit status of a command: one verdict, one exit code.

use crate::search::outcome::Status;

/// The exit codes in words, for help and README. Every help text ends with them.
macro_rules! exit_codes {
    () => {
        "Exit codes: 0 success (a status `optimal` is proved); 2 bad input; 3 infeasible (proved); 4 feasible, not \
         proved optimal (stopped, or a gap remains); 5 unknown: stopped before any result."
    };
}
pub(crate) use exit_codes;

/// The verdict of a command that wrote a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// A result without a search.
    Success,
    /// A checked file or result is faulty; the report lists the faults.
    CheckFailed,
    Searched(Status),
}

pub const BAD_INPUT: u8 = 2;

impl ExitStatus {
    /// Of a command whose answer is infeasible where nothing runs.
    pub fn of(runs: bool) -> ExitStatus {
        if runs { ExitStatus::Success } else { ExitStatus::Searched(Status::Infeasible) }
    }

    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Success | ExitStatus::Searched(Status::Optimal) => 0,
            ExitStatus::CheckFailed => BAD_INPUT,
            ExitStatus::Searched(Status::Infeasible) => 3,
            ExitStatus::Searched(Status::Feasible) => 4,
            ExitStatus::Searched(Status::Unknown) => 5,
        }
    }
}

impl From<Status> for ExitStatus {
    fn from(status: Status) -> ExitStatus {
        ExitStatus::Searched(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_proved_exits_with_the_code_of_what_is_proved() {
        let codes = [Status::Optimal, Status::Feasible, Status::Infeasible, Status::Unknown]
            .map(|status| ExitStatus::from(status).code());
        assert_eq!(codes, [0, 4, 3, 5]);
        assert_eq!(ExitStatus::CheckFailed.code(), BAD_INPUT);
        for code in codes {
            assert!(exit_codes!().contains(&format!("{code} ")), "{code} is not in the help");
        }
    }
}
