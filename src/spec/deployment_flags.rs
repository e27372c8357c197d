//! The flags of a given deployment: those of each role differ in their prefix alone.

use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Command};

use super::degree::{Degree, Degrees};
use super::deployment::Deployment;
use super::limits::{DEGREE, whole};
use super::offload::OffloadPart;
use super::role::Role;

const HEADING: &str = "Deployment";
const SP: &str = "sp";
const STAGES: &str = "stages";
const REPLICAS: &str = "replicas";
const PLAN: &str = "plan";
const OFFLOAD_PART: &str = "offload_part";

fn heading(role: Role) -> &'static str {
    match role {
        Role::Aggregated => HEADING,
        Role::Prefill => "Prefill pool (disaggregated)",
        Role::Decode => "Decode pool (disaggregated)",
    }
}

fn id(role: Role, name: &str) -> String {
    format!("{}{name}", role.flag_prefix())
}

fn flag(role: Role, name: &str, about: &'static str) -> Arg {
    let id = id(role, name);
    Arg::new(id.clone()).long(id).help(about).help_heading(heading(role))
}

fn number(role: Role, name: &str, about: &'static str) -> Arg {
    let parser = whole(&DEGREE);
    flag(role, name, about).value_name("N").value_parser(parser).allow_negative_numbers(true)
}

fn degrees(role: Role) -> Vec<Arg> {
    let [sp, stages, replicas] = Degrees::OTHERS;
    let mut flags: Vec<Arg> =
        Degree::stated().map(|degree| number(role, &degree.flag(), degree.about())).collect();
    flags.extend([
        flag(role, SP, sp)
            .num_args(0..=1)
            .default_missing_value("true")
            .value_name("true|false")
            .value_parser(clap::value_parser!(bool)),
        flag(role, STAGES, stages)
            .value_name("N,N,...")
            .value_delimiter(',')
            .action(clap::ArgAction::Append)
            .value_parser(clap::value_parser!(u32)),
        number(role, REPLICAS, replicas),
    ]);
    flags
}

fn read(matches: &ArgMatches, role: Role, degrees: &mut Degrees) {
    let number = |name: &str| matches.get_one::<u64>(&id(role, name)).copied();
    for degree in Degree::stated() {
        if let Some(slot) = degrees.get_mut(degree) {
            *slot = number(&degree.flag()).or(*slot);
        }
    }
    degrees.sp = matches.get_one::<bool>(&id(role, SP)).copied().or(degrees.sp);
    let stages = matches.get_many::<u32>(&id(role, STAGES));
    degrees.stages = stages.map(|stages| stages.copied().collect()).or(degrees.stages.take());
    degrees.replicas = number(REPLICAS).or(degrees.replicas);
}

impl clap::Args for Deployment {
    fn augment_args(command: Command) -> Command {
        let plan = Arg::new(PLAN).long(PLAN).value_name("PLAN");
        let plan = plan.help("Whole plan in one line, as in `plan.notation` of a result");
        let part = Arg::new(OFFLOAD_PART).long("offload-part").value_name("layers|experts|kv");
        let part = part.help("Offloaded part, as far as device memory is too small: layers, experts or kv");
        let part = part.value_parser(EnumValueParser::<OffloadPart>::new()).hide_possible_values(true);
        command
            .args(Role::EACH.into_iter().flat_map(degrees))
            .args([plan.help_heading(HEADING), part.help_heading(HEADING)])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Deployment::augment_args(command)
    }
}

impl clap::FromArgMatches for Deployment {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Deployment, clap::Error> {
        let mut stated = Deployment::default();
        stated.update_from_arg_matches(matches)?;
        Ok(stated)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        read(matches, Role::Aggregated, &mut self.both);
        read(matches, Role::Prefill, &mut self.prefill);
        read(matches, Role::Decode, &mut self.decode);
        self.plan = matches.get_one::<String>(PLAN).cloned().or(self.plan.take());
        self.offload_part = matches.get_one::<OffloadPart>(OFFLOAD_PART).copied().or(self.offload_part);
        Ok(())
    }
}
