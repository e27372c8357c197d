//! The types and functions that most users of the library need.

pub use crate::report::result::{EstimateResult, OptimizeResult, ReportedDeployment};
pub use crate::request::estimate::{EstimateRequest, estimate};
pub use crate::request::explain::{ExplainReport, ExplainRequest, Number, explain};
pub use crate::request::optimize::{OptimizeRequest, optimize};
pub use crate::request::{REQUESTS, RequestControl, UNCONTROLLED};
pub use crate::spec::deployment::Deployment;
pub use crate::spec::error::Error;
pub use crate::spec::objective::Metric;
pub use crate::spec::scenario::Scenario;
pub use crate::store::catalog::Catalog;
pub use crate::store::kind::CatalogKind;
