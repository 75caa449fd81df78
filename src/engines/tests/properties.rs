//! Arbitrary bytes, and engines that count up.

use proptest::prelude::*;

use super::*;

fn routes() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("/health".to_owned()),
        Just("/ready".to_owned()),
        Just("/v1/models".to_owned()),
        Just("/version".to_owned()),
        Just("/is_sleeping".to_owned()),
        Just("/is_paused".to_owned()),
        Just("/server_info".to_owned()),
        Just("/metrics".to_owned()),
        Just("POST /sleep?level=99999999999".to_owned()),
        ".{0,20}",
    ]
}

fn bodies() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,80}",
        Just(r#"{"is_sleeping":1,"is_paused":[],"data":{"id":0},"version":{}}"#.to_owned()),
        Just(r#"{"data":[null,{"id":null},{"id":"\u0000","owned_by":5}]}"#.to_owned()),
        Just(format!("{}1{}", "[".repeat(300), "]".repeat(300))),
    ]
}

fn log_lines() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        ".{0,30}",
        Just("Loading safetensors checkpoint shards: ".to_owned()),
        Just("62% Completed | 23/37 [02:31<01:32, 6.59s/it]".to_owned()),
        Just("[99999999999999999999:99<?".to_owned()),
        Just("Fetching 41 files: ".to_owned()),
        Just("downloaded 1e308 TiB of 99999999999999999999999999".to_owned()),
        Just("9999-99-99 99:99:99 ".to_owned()),
        Just("\u{1b}[31".to_owned()),
        Just("Initializing a V1 LLM engine (v".to_owned()),
        Just("Remaining number of requests ".to_owned()),
        Just("\r".to_owned()),
        Just("é%|█".to_owned()),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_observed_breaks_a_report(
        answers in proptest::collection::vec((routes(), 0_i64..9999, 0_u16..700, bodies()), 0..8),
        page in "(vllm:[a-z_]{0,12}(\\{[a-z=\",0-9]{0,20}\\})? [0-9a-zNI.+-]{0,8}\n|.{0,40}\n){0,10}",
        lines in proptest::collection::vec(log_lines(), 0..20),
        ready: bool,
    ) {
        let mut scene = answers.into_iter().fold(Scene::new(), |scene, (route, ago, status, body)| scene.says(&route, ago, status, &body));
        scene = scene.page(30, &page).page(0, &page).log(&lines.join("\n")).running_for(500, ready);
        let report = scene.report();
        prop_assert!(!report.why.is_empty());
        for fact in [report.progress, report.eta_s].into_iter().flatten() {
            prop_assert!(fact.value.is_finite() && fact.value >= 0.0);
        }
    }

    #[test]
    fn counters_that_grow_never_give_a_negative_rate(steps in proptest::collection::vec((0_u32..1000, 1_i64..100), 1..6), restart: bool) {
        let (mut tokens, mut ago) = (500_000_u32, 5000_i64);
        let mut scene = Scene::vllm();
        for (grown, seconds) in &steps {
            scene = scene.load(ago, 1, 0, tokens);
            tokens += grown;
            ago -= seconds;
        }
        scene = scene.load(ago, 1, 0, if restart { 3 } else { tokens });
        let report = scene.report();
        let rate = report.load.unwrap().rates["generation-tokens"].clone();
        match restart {
            true => prop_assert!(rate.is_err() && report.movement.is_err() && report.stall.is_none()),
            false => {
                let (grown, seconds) = steps[steps.len() - 1];
                prop_assert_eq!(rate, Ok(f64::from(grown) / seconds as f64));
            }
        }
    }
}
