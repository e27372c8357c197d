//! Every published table, read by its own columns; and small tables of each layout with known answers.

use std::fs;
use std::path::{Path, PathBuf};

use mantile::request::UNCONTROLLED;
use mantile::request::validate::table::MeasuredTable;
use mantile::request::validate::{ValidateReport, ValidateRequest, validate};
use mantile::spec::error::Error;
use mantile::store::catalog::Catalog;
use mantile::validate::figures::RunFigure;
use mantile::validate::summary::{RowGroup, Validation};

fn report(name: &str, csv: &str) -> Result<Validation, Error> {
    let table = MeasuredTable { name: name.to_owned(), csv: csv.to_owned() };
    let request = ValidateRequest { tables: vec![table], ..ValidateRequest::default() };
    match validate(&Catalog::default(), &request, &UNCONTROLLED)? {
        ValidateReport::Validation(found) => Ok(*found),
        _ => panic!("errors were requested"),
    }
}

fn found(csv: &str) -> Validation {
    report("t.csv", csv).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Errors of a group, of any figure.
fn scores(group: &RowGroup) -> usize {
    let times = [group.tpot, group.ttft, group.e2e, group.memory].into_iter().flatten().map(|score| score.n);
    let further = group.figures.iter().map(|one| one.score.n);
    times.chain(further).sum()
}

/// The groups of a report that part its rows.
fn parts(found: &Validation) -> impl Iterator<Item = &RowGroup> {
    std::iter::once(&found.overall).chain(&found.doubtful).chain(&found.above_capacity)
}

/// The tables of the folder of shared data.
fn published() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/validation");
    if !folder.exists() {
        assert!(std::env::var("CI").is_err(), "{} is missing in CI", folder.display());
        eprintln!("SKIPPED: {} is not there, so no published table was read", folder.display());
        return vec![];
    }
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "csv")).collect();
    tables.sort();
    assert!(!tables.is_empty());
    tables
}

/// Scored figures of each table at least, doubtful rows included: nine tenths of those that were counted.
const FLOORS: [(&str, usize); 15] = [
    ("accelerators.csv", 58),
    ("agentic.csv", 23),
    ("aisimulate_points.csv", 20),
    ("home.csv", 100),
    ("memory.csv", 188),
    ("memory_startup.csv", 30),
    ("offline.csv", 1338),
    ("open_loop.csv", 144),
    ("open_loop2.csv", 448),
    ("open_loop2_peers.csv", 1642),
    ("prefix.csv", 10),
    ("serving.csv", 4059),
    ("singlestream.csv", 1268),
    ("speculative.csv", 16),
    ("wide_ep.csv", 18),
];

/// Runs of tables whose every row has a prediction or a reason.
const WHOLE: [(&str, usize); 2] = [("agentic.csv", 32), ("aisimulate_points.csv", 18)];

/// Tables of long runs, each of which is simulated, and the number of rows of which one is read; all are with
/// `MANTILE_TABLES=all`, as in the nightly lane.
const SIMULATED: [(&str, usize); 2] = [("agentic.csv", 8), ("open_loop.csv", 12)];

/// The rows of a table that are read, and the number of rows of which one is.
fn read_rows(name: &str, csv: String) -> (String, usize) {
    let each = SIMULATED.iter().find(|(table, _)| *table == name).map_or(1, |(_, each)| *each);
    if each == 1 || std::env::var("MANTILE_TABLES").is_ok_and(|tables| tables == "all") {
        return (csv, 1);
    }
    let mut lines = csv.lines();
    let header = lines.next().unwrap_or_default();
    let rows = std::iter::once(header).chain(lines.step_by(each));
    (rows.collect::<Vec<_>>().join("\n"), each)
}

#[test]
fn every_published_table_has_scored_rows() {
    for path in published() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (csv, each) = read_rows(&name, fs::read_to_string(&path).unwrap());
        let found = report(&name, &csv).unwrap_or_else(|fault| panic!("{fault}"));
        let scored = parts(&found).map(scores).sum::<usize>()
            + found.peers.iter().map(|one| one.score.n).sum::<usize>();
        let floor = FLOORS.iter().find(|(table, _)| *table == name).map_or(1, |(_, floor)| *floor / each);
        println!("{name}: {scored} figures, {} rows dropped", found.dropped.len());
        assert!(scored >= floor, "{name}: {scored} figures are scored, fewer than {floor}");
        if let Some((_, runs)) = WHOLE.iter().find(|(table, _)| *table == name && each == 1) {
            let groups = std::iter::once(&found.overall).chain(&found.doubtful);
            assert_eq!(groups.map(|one| one.n + one.unsupported).sum::<usize>(), *runs, "{name}");
        }
        for one in &found.dropped {
            assert!(one.row > 1 && !one.found.is_empty() && !one.expected.is_empty(), "{one:?}");
        }
    }
}

#[test]
fn a_bad_cell_drops_its_row_and_a_table_of_such_rows_is_refused() {
    let header = "id,model,hardware,runtime,isl,osl,concurrency,ttft_ms,tpot_ms\n";
    let row = |concurrency| format!("a,Llama-3.1-8B,nvidia-h100-sxm,vllm,1024,128,{concurrency},40,8\n");
    let found = found(&format!("{header}{}{}", row("8"), row("~700")));
    assert_eq!((found.overall.n, found.dropped.len()), (1, 1));
    assert_eq!((found.dropped[0].column.as_str(), found.dropped[0].found.as_str()), ("concurrency", "~700"));
    let shown = mantile::report::validation::text(&found);
    assert!(shown.contains("t.csv, row 3, concurrency: found `~700`, expected"), "{shown}");
    let fault = report("t.csv", &format!("{header}{}", row("many"))).unwrap_err();
    assert!(fault.file.contains("t.csv") && fault.key.contains("row 2"), "{fault}");
}

/// In a closed loop all figures of a run follow from each other.
#[test]
fn figures_of_a_closed_loop_agree_with_each_other() {
    let table = "id,model,hardware,runtime,isl,osl,concurrency,ttft_ms,tpot_ms,itl_mean_ms,e2e_mean_ms,output_tok_s,total_tok_s\n\
                 a,Llama-3.1-8B,nvidia-h100-sxm,vllm,1000,101,4,40,8,8,800,400,\n\
                 b,Llama-3.1-8B,nvidia-h100-sxm,vllm,1000,101,4,40,8,8,800,,4400\n";
    let found = found(table);
    let figure = |row: usize, figure: RunFigure| {
        let row = &found.rows[row];
        row.figures.iter().find(|one| one.figure == figure).unwrap_or_else(|| panic!("{row:?}"))
    };
    let (ttft, tpot) = (found.rows[0].ttft_ms.unwrap().predicted, found.rows[0].tpot_ms.unwrap().predicted);
    let e2e = figure(0, RunFigure::E2e).predicted;
    assert!((e2e - ttft - 100.0 * tpot).abs() < 1e-6 * e2e, "{e2e} {ttft} {tpot}");
    let output = figure(0, RunFigure::Output).predicted;
    assert!((output * e2e / (4.0 * 101.0 * 1e3) - 1.0).abs() < 0.02, "{output} {e2e}");
    assert_eq!(figure(0, RunFigure::Itl).predicted, tpot);
    let of_all = figure(1, RunFigure::Output);
    assert!((of_all.measured - 4400.0 * 101.0 / 1101.0).abs() < 1e-9 && of_all.predicted == output);
    assert!(found.unscored.is_empty(), "{:?}", found.unscored);
}

#[test]
fn a_saturated_run_has_the_throughput_of_the_best_load() {
    let row = |mode: &str, concurrency: &str| {
        format!(
            "a,Llama-3.1-8B,bf16,nvidia-h100-sxm,1,1,vllm,{mode},512,512,{concurrency},output_tok_s_total,9000\n"
        )
    };
    let header = "id,model,weight_format,hardware,devices,tp,runtime,mode,isl,osl,concurrency,metric,value\n";
    let output = |rows: String| {
        let found = found(&format!("{header}{rows}"));
        found.rows[0].figures.iter().find(|one| one.figure == RunFigure::Output).unwrap().predicted
    };
    let best = output(row("offline-max-throughput", ""));
    for load in ["1", "32", "128"] {
        assert!(output(row("agg", load)) <= best * (1.0 + 1e-9), "{load}");
    }
    let unknown = found(&format!("{header}{}", row("agg", "")));
    assert!(unknown.unsupported[0].reason.contains("load is unknown"), "{:?}", unknown.unsupported);
}

/// 2 x 8 x 128 x 2 bytes of K and V for each of 32 layers: 128 KiB a token.
#[test]
fn a_start_has_the_memory_and_the_tokens_of_its_cache() {
    let table = "id,model,precision,hardware,devices,tp,runtime,mode,mem_util,weights_gib_per_device,kv_gib_per_device,kv_tokens\n\
                 a,meta-llama/Llama-3.1-8B-Instruct,bf16,nvidia-h100-sxm,1,1,vLLM,start-up,0.9,14.99,51.38,420000\n\
                 b,meta-llama/Llama-3.1-8B-Instruct,bf16,nvidia-h100-sxm,1,1,vLLM,start-up,,14.99,51.38,420000\n";
    let found = found(table);
    let of = |row: usize| {
        found.rows[row].figures.iter().map(|one| (one.figure, one.predicted)).collect::<Vec<_>>()
    };
    let [(RunFigure::Weights, weights), (RunFigure::KvMemory, free), (RunFigure::KvTokens, tokens)] =
        of(0)[..]
    else {
        panic!("{:?}", of(0))
    };
    let gib = 1024f64.powi(3);
    assert!((weights / gib - 14.96).abs() < 0.1, "{weights}");
    assert!((0.9 * 80.0 * gib) > free + weights, "{free}");
    assert!((tokens * 131_072.0 / free - 1.0).abs() < 0.02, "{tokens} {free}");
    // Without the fraction the free memory is unknown, the weights are not.
    assert_eq!(of(1).iter().map(|one| one.0).collect::<Vec<_>>(), [RunFigure::Weights]);
    assert!(
        found.unscored.iter().any(|one| one.column == "kv_tokens" && one.rows == 1),
        "{:?}",
        found.unscored
    );
}

#[test]
fn a_home_machine_runs_the_plan_that_its_command_states() {
    let row = |gpu: &str, number: u32, cpu: &str, offload: &str| {
        format!(
            "a,moe_cpu,Qwen3-30B-A3B,Q4_K_M 17.3GiB,llama.cpp,{gpu},{number},{cpu},64GB 2ch DDR5-6000,{offload},512,128,1,900,60\n"
        )
    };
    let header = "id,class,model,quant,runtime,gpu,gpu_count,cpu,ram,offload,prompt_tokens,gen_tokens,concurrency,pp_tok_s,tg_tok_s\n";
    let tpot = |row: String| {
        let found = found(&format!("{header}{row}"));
        let one = found.rows.first().unwrap_or_else(|| panic!("{:?}", found.unsupported));
        assert_eq!(one.figures[0].figure, RunFigure::Prefill);
        assert!((one.tpot_ms.unwrap().measured * 60.0 - 1e3).abs() < 1e-9);
        (one.tpot_ms.unwrap().predicted, found.groups[0].name.clone())
    };
    let on_card = tpot(row("RTX 4090 24GB", 1, "Ryzen 9 7950X", "-ngl 99"));
    let half = tpot(row("RTX 4090 24GB", 1, "Ryzen 9 7950X", "-ngl 99 --n-cpu-moe 24"));
    let experts = tpot(row("RTX 4090 24GB", 1, "Ryzen 9 7950X", "-ngl 99 -ot exps=CPU"));
    let alone = tpot(row("", 0, "Ryzen 9 7950X", "CPU only"));
    assert!(
        on_card.0 < half.0 && half.0 < experts.0 && experts.0 < alone.0,
        "{on_card:?} {half:?} {experts:?} {alone:?}"
    );
    assert_eq!(on_card.1, "moe_cpu");
    let both = tpot(
        row("RTX 4090 24GB + RTX 3090 24GB", 2, "", "\"-ngl 99, all on GPU\"")
            .replace("moe_cpu", "multi_gpu"),
    );
    let slow = tpot(row("RTX 3090 24GB", 1, "Ryzen 9 7950X", "-ngl 99"));
    assert!(both.0 < slow.0, "{both:?} {slow:?}");
    let unknown = found(&format!("{header}{}", row("RTX 3070 16GB", 1, "", "-ngl 99")));
    assert!(
        unknown.unsupported[0].reason.contains("3070"),
        "a card of other memory: {:?}",
        unknown.unsupported
    );
}

#[test]
fn pools_of_one_cell_are_those_of_columns() {
    let of = |columns: &str, cells: &str| {
        let table = format!(
            "id,model,precision,hardware,runtime,mode,isl,osl,concurrency,prefill_workers,decode_workers,{columns},tpot_p50_ms\n\
             a,DeepSeek-V3,fp8,nvidia-h200-sxm,sglang,disagg 1P1D,1024,1024,64,1,1,{cells},20\n"
        );
        let found = found(&table);
        found.rows.first().unwrap_or_else(|| panic!("{:?}", found.unsupported)).tpot_ms.unwrap().predicted
    };
    let text = of("prefill_parallel,decode_parallel", "TP8,DEP8");
    let numbers = of("prefill_tp,decode_dp,decode_ep", "8,8,8");
    assert_eq!(text, numbers);
}

#[test]
fn prompts_in_a_cache_are_not_computed_again() {
    let row = |hits: &str| format!("a,Llama-3.1-8B,nvidia-h100-sxm,vllm,8192,64,1,8000,{hits},300\n");
    let header = "id,model,hardware,runtime,isl,osl,concurrency,prefix_len,hit_rate,ttft_mean_ms\n";
    let ttft = |hits| found(&format!("{header}{}", row(hits))).rows[0].ttft_ms.unwrap().predicted;
    assert!(ttft("0.9") < 0.3 * ttft("0"), "{} {}", ttft("0.9"), ttft("0"));
    let unknown = found(&format!("{header}{}", row("")));
    assert!(unknown.unsupported[0].reason.contains("without hit_rate"), "{:?}", unknown.unsupported);
}

#[test]
fn a_row_of_drafts_has_its_run_without_one() {
    let table = "id,model,precision,hardware,devices,tp,runtime,isl,osl,concurrency,method,num_spec_tokens,accept_len,base_tpot_ms,spec_tpot_ms\n\
                 a,DeepSeek-V3,fp8,nvidia-h200-sxm,8,8,sglang,1024,1024,8,MTP,3,2.5,20,12\n\
                 b,DeepSeek-V3,fp8,nvidia-h200-sxm,8,8,sglang,1024,1024,8,EAGLE-3,3,2.5,20,12\n";
    let found = found(table);
    let tpot: Vec<f64> = found.rows.iter().map(|row| row.tpot_ms.unwrap().predicted).collect();
    assert!(tpot.len() == 3 && tpot[1] < tpot[0] && tpot[2] == tpot[0], "{tpot:?}");
    assert!(found.unsupported[0].reason.contains("eagle-3"), "{:?}", found.unsupported);
}

/// Text, Markdown and rows have the same figures with the same errors.
#[test]
fn every_format_has_all_figures() {
    let found = found(
        "id,model,hardware,runtime,isl,osl,concurrency,ttft_ms,tpot_ms,itl_mean_ms,e2e_ms,prefill_tok_s,output_tok_s\n\
         a,Llama-3.1-8B,nvidia-h100-sxm,vllm,1024,128,4,50,7,7.5,950,30000,500\n",
    );
    let text = mantile::report::validation::text(&found);
    let markdown = mantile::report::validation::markdown(&found);
    let rows = mantile::report::validation::groups_csv(&found);
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let header = reader.headers().unwrap().clone();
    let all = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| &all[header.iter().position(|column| column == name).unwrap()];
    assert!(found.overall.figures.len() >= 4, "{:?}", found.overall.figures);
    for one in &found.overall.figures {
        let name = one.figure.name();
        let shown = format!("{:.1}", 100.0 * one.score.mdape);
        let line = |text: &str| text.lines().any(|line| line.contains(name) && line.contains(&shown));
        assert!(line(&text) && line(&markdown), "{name}: {text}\n{markdown}");
        let column = name.to_lowercase().replace([' ', '/'], "_").replace("e2e", "e2e_closed_loop");
        assert_eq!(cell(&format!("{column}_n")), "1");
        assert_eq!(cell(&format!("{column}_mdape")), format!("{:.4}", one.score.mdape), "{rows}");
    }
    assert_eq!(cell("tokens_of_the_kv_cache_n"), "");
    let names: std::collections::BTreeSet<&str> = header.iter().collect();
    assert_eq!(names.len(), header.len(), "a column of its own for each");
}

/// A rate far above what the servers answer has a line of its own, and no part in the errors of steady states.
#[test]
fn a_rate_above_the_capacity_is_not_in_the_errors() {
    let row = |id, rate| format!("{id},Llama-3.1-8B,nvidia-l40s,vllm,2048,128,{rate},400,100,20,900\n");
    let header =
        "id,model,hardware,runtime,isl,osl,rate,num_prompts,ttft_mean_ms,tpot_mean_ms,output_tok_s\n";
    let found = found(&format!("{header}{}{}", row("slow", 0.2), row("fast", 200.0)));
    let above = found.above_capacity.as_ref().unwrap();
    assert_eq!((found.overall.n, above.n), (1, 1));
    assert_eq!(found.rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["slow"]);
    let shown = mantile::report::validation::text(&found);
    assert!(shown.contains("above the predicted capacity"), "{shown}");
    // A server that keeps up answers what is sent.
    assert!(found.overall.figures.is_empty() && above.figures[0].figure == RunFigure::Output);
}
