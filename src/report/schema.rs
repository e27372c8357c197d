//! JSON Schemas of inputs and outputs, generated from the types.

use schemars::{Schema, schema_for};

use super::comparison::ComparisonReport;
use super::fleet::FleetResult;
use super::inspect::Inspected;
use super::recommend::Recommendation;
use super::recommend::models::ServedModels;
use super::result::{EstimateResult, OptimizeResult};
use super::static_batch::StaticReport;
use super::sweep::SweepReport;
use super::verify::Verified;
use crate::spec::cluster::System;
use crate::spec::defaults::Defaults;
use crate::spec::device::Device;
use crate::spec::fleet::FleetFile;
use crate::spec::format::NumberFormat;
use crate::spec::launch::Launch;
use crate::spec::link::Link;
use crate::spec::model::file::ModelFile;
use crate::spec::objective::{Objective, Workload};
use crate::spec::option_table::OptionTable;
use crate::spec::rig::Rig;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;
use crate::validate::summary::Validation;

/// Makes a schema from a type.
pub type Make = fn() -> Schema;

/// Schema names with their generators.
pub static SCHEMAS: &[(&str, Make)] = &[
    ("model", || schema_for!(ModelFile)),
    ("device", || schema_for!(Device)),
    ("system", || schema_for!(System)),
    ("rig", || schema_for!(Rig)),
    ("link", || schema_for!(Link)),
    ("format", || schema_for!(NumberFormat)),
    ("runtime", || schema_for!(Runtime)),
    ("launch", || schema_for!(Launch)),
    ("option-table", || schema_for!(OptionTable)),
    ("defaults", || schema_for!(Defaults)),
    ("objective", || schema_for!(Objective)),
    ("workload", || schema_for!(Workload)),
    ("scenario", || schema_for!(Scenario)),
    ("result", || schema_for!(OptimizeResult)),
    ("estimate", || schema_for!(EstimateResult)),
    ("static", || schema_for!(StaticReport)),
    ("sweep", || schema_for!(SweepReport)),
    ("comparison", || schema_for!(ComparisonReport)),
    ("recommend", || schema_for!(Recommendation)),
    ("recommend-hardware", || schema_for!(ServedModels)),
    ("fleet", || schema_for!(FleetFile)),
    ("fleet-result", || schema_for!(FleetResult)),
    ("validate", || schema_for!(Validation)),
    ("verify", || schema_for!(Verified)),
    ("inspect", || schema_for!(Inspected)),
    ("deploy", || schema_for!(super::launch::LaunchReport)),
    ("detect", || schema_for!(super::machine::MachineReport)),
    ("placement", || schema_for!(super::place::PlacementResult)),
];

/// The schema called `name`.
pub fn schema(name: &str) -> Option<Schema> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}
