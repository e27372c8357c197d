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
        let (own, applied) = match &mut self.command {
            None => (&mut self.optimize.problem.defaults, &mut self.optimize.output.applied),
            Some(Command::Optimize(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Estimate(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Static(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Deploy(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Explain(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Audit(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Place(command)) => (&mut command.defaults, &mut command.output.applied),
            Some(Command::Recommend(command)) => (&mut command.defaults, &mut command.output.applied),
            Some(Command::Fleet(command)) => (&mut command.defaults, &mut command.output.applied),
            Some(Command::Config(command)) => (&mut command.defaults, &mut command.output.applied),
            Some(Command::Compare(command)) => (&mut command.problem.defaults, &mut command.output.applied),
            Some(Command::Sweep(command)) => (&mut command.problem.defaults, &mut command.applied),
            Some(_) => return,
        };
        *own = defaults.clone();
        *applied = defaults.applied.clone();
    }
}
