//! Questions without an answer, each with a reason of its own.

use mantile::search::placement::chain::{Chain, Member, SegmentCost};
use mantile::search::placement::{PlacementInfeasible, least_slowest, least_sum};

fn member(layers: usize, usable: u64) -> Member {
    Member {
        layers: vec![SegmentCost { ticks: 5, pages: 4 }; layers],
        experts: vec![0; layers],
        first: SegmentCost { ticks: 1, pages: 1 },
        last: SegmentCost { ticks: 2, pages: 1 },
        copy: 0,
        host: 3,
        base: 1,
        usable,
        spill: None,
        disk: None,
    }
}

fn chain(layers: usize, usable: &[u64], link: Option<u64>) -> Chain {
    let count = usable.len();
    let links = (0..count).map(|a| (0..count).map(|b| if a == b { Some(0) } else { link }).collect());
    let members = usable.iter().map(|&usable| member(layers, usable)).collect();
    Chain { layers, members, links: links.collect(), hosts: vec![] }
}

#[test]
fn one_member_is_a_placement() {
    let found = least_sum(&chain(3, &[15], None)).unwrap();
    assert_eq!((found.ticks, found.stages.len()), (3 + 1 + 2 + 15, 1));
}

#[test]
fn a_layer_that_is_too_large_is_named_with_what_is_missing() {
    let refusal = least_sum(&chain(3, &[4, 5], Some(0))).unwrap_err();
    assert_eq!(refusal, PlacementInfeasible::LayerTooLarge { layer: 0, member: 1, short: 1 });
}

#[test]
fn too_little_memory_is_shown_by_how_much() {
    let refusal = least_sum(&chain(6, &[12, 12], Some(0))).unwrap_err();
    assert_eq!(refusal, PlacementInfeasible::Memory { needed: 26, available: 22 });
}

#[test]
fn what_no_link_joins_is_disconnected() {
    let parted = chain(4, &[11, 11], None);
    assert_eq!(least_sum(&parted).unwrap_err(), PlacementInfeasible::Disconnected { parts: 2 });
    assert!(least_sum(&chain(4, &[11, 11], Some(0))).is_ok());
}

#[test]
fn memory_that_suffices_but_not_in_whole_layers_is_shown_separate() {
    let refusal = least_sum(&chain(4, &[8, 8, 8], Some(0))).unwrap_err();
    assert_eq!(refusal, PlacementInfeasible::WholeLayers { held: Some(3) });
}

#[test]
fn no_number_of_stages_beyond_members_or_layers_is_tried() {
    let small = chain(2, &[30, 30, 30], Some(1));
    assert_eq!(least_slowest(&small, 3, u64::MAX), None);
    assert_eq!(least_slowest(&small, 0, u64::MAX), None);
    assert!(least_slowest(&small, 2, u64::MAX).is_some());
    assert!(least_sum(&chain(200, &[3000], Some(1))).is_ok());
    let deep = least_sum(&chain(201, &[204; 4], Some(1)));
    assert_eq!(deep.unwrap_err(), PlacementInfeasible::WholeLayers { held: None });
}
