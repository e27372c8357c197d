//! The user's defaults, under the flags of the commands that pose a problem.

use super::defaults::UserDefaults;
use super::{Cli, Command};
use crate::spec::error::Error;

/// The user's defaults, for a command that poses a problem.
pub(super) fn defaults_of(cli: &Cli) -> Result<UserDefaults, Error> {
    match cli.command {
        None
        | Some(
            Command::Optimize(_)
            | Command::Estimate(_)
            | Command::Static(_)
            | Command::Deploy(_)
            | Command::Explain(_)
            | Command::Audit(_)
            | Command::Diagnose(_)
            | Command::Nearest(_)
            | Command::Place(_)
            | Command::Recommend(_)
            | Command::Fleet(_)
            | Command::Sweep(_)
            | Command::Compare(_)
            | Command::Config(_),
        ) => UserDefaults::from_env(),
        Some(_) => Ok(UserDefaults::default()),
    }
}

impl Cli {
    /// Puts the user's defaults under the flags of the command.
    pub(super) fn apply(&mut self, defaults: &UserDefaults) {
        let (own, output) = match &mut self.command {
            None => (&mut self.optimize.problem.defaults, &mut self.optimize.output),
            Some(Command::Optimize(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Estimate(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Static(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Deploy(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Explain(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Diagnose(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Nearest(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Audit(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Place(command)) => (&mut command.defaults, &mut command.output),
            Some(Command::Recommend(command)) => (&mut command.defaults, &mut command.output),
            Some(Command::Fleet(command)) => (&mut command.defaults, &mut command.output),
            Some(Command::Config(command)) => (&mut command.defaults, &mut command.output),
            Some(Command::Compare(command)) => (&mut command.problem.defaults, &mut command.output),
            Some(Command::Sweep(command)) => {
                command.problem.defaults = defaults.clone();
                command.applied = defaults.applied.clone();
                return;
            }
            Some(_) => return,
        };
        *own = defaults.clone();
        output.applied = defaults.applied.clone();
    }
}
