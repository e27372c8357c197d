//! JSON Schemas of files, generated from the types. Those of requests and answers are with their questions.

use schemars::{Schema, schema_for};

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
use crate::spec::run::RunRecord;
use crate::spec::runtime::Runtime;
use crate::spec::scenario::Scenario;

pub type Make = fn() -> Schema;

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
    ("fleet", || schema_for!(FleetFile)),
    ("run", || schema_for!(RunRecord)),
];

pub fn schema(name: &str) -> Option<Schema> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}
