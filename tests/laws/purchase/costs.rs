//! The cost row is one: each door that states a cost states that of the deployment.

use fastrand::Rng;
use mantile::report::cost::CostReport;
use mantile::request::UNCONTROLLED;
use mantile::request::deploy::{DeployRequest, deploy};
use mantile::request::optimize::{OptimizeRequest, optimize};
use mantile::spec::scenario::Scenario;
use mantile::store::catalog::Catalog;

use super::near;
use crate::draw::{between, cases, name};

/// `deploy` states the cost that `optimize` states, of the hours of the question, and its parts agree with each other.
#[test]
fn the_cost_of_a_launch_is_that_of_its_deployment() {
    let mut random = Rng::with_seed(343);
    let (mut priced, mut short_days) = (0, 0);
    while priced < cases(12) {
        let hours = random.bool().then(|| between(&mut random, 1.0, 24.0));
        let scenario = Scenario {
            model: name(&mut random, &super::MODELS),
            hardware: name(&mut random, &super::SYSTEMS),
            hours_per_day: hours,
            isl: Some(between(&mut random, 64.0, 4000.0) as u64),
            osl: Some(between(&mut random, 16.0, 400.0) as u64),
            ..Scenario::default()
        };
        let launched =
            deploy(&Catalog::default(), &DeployRequest { scenario: scenario.clone() }, &UNCONTROLLED);
        let Ok(Some(cost)) = launched.map(|launch| launch.cost) else { continue };
        let request =
            OptimizeRequest { scenario, max_front_points: Some(0.into()), ..OptimizeRequest::default() };
        let found = optimize(&Catalog::default(), &request, &UNCONTROLLED).unwrap();
        assert_eq!(Some(&cost), CostReport::of(found.best.as_ref().unwrap(), &found.question).as_ref());
        assert!(near(cost.hours_per_day, hours.unwrap_or(24.0)), "{cost:?}");
        assert!(near(cost.usd_per_day, cost.usd_per_hour * cost.hours_per_day), "{cost:?}");
        assert!(near(cost.usd_per_mtok * cost.tok_per_usd, 1e6), "{cost:?}");
        // The row names the hours of a day where it has fewer than 24.
        assert_eq!(cost.row("", "").contains(" hours"), cost.hours_per_day != 24.0, "{}", cost.row("", ""));
        priced += 1;
        short_days += usize::from(hours.is_some());
    }
    assert!(short_days > 0);
}
