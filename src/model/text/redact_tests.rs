use super::*;
use proptest::prelude::*;
use rstest::rstest;

/// A secret that is put together here, so that no scanner of repositories takes it for a real one.
fn secret(shape: &str) -> String {
    format!("{shape}{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4")
}

#[rstest]
#[case("--api-key {S} --port 8000")]
#[case("--api-key={S}")]
#[case("api_key: {S}")]
#[case("\"apiKey\":\"{S}\"")]
#[case("{\\\"api_key\\\": \\\"{S}\\\"}")]
#[case("password={S}")]
#[case("PASSWORD = '{S}'")]
#[case("HF_TOKEN={S}")]
#[case("token: {S}")]
#[case("secret={S}, x=1")]
#[case("Authorization: Bearer {S}")]
#[case("authorization: {S} trailing words too")]
#[case("curl -H 'X-Api-Key: {S}'")]
#[case("http://user:{S}@host/path")]
#[case("postgres://u:{S}@db:5432/x")]
#[case("https://bucket/x?X-Amz-Signature={S}&y=1")]
#[case("https://x/y?access_token={S}")]
#[case("client-key-data: {S}")]
#[case("Bearer {S}")]
#[case("Cookie: session={S}; other={S}")]
#[case("{\"detail\":\"password {S}; try again\"}")]
#[case("api_key {S}")]
#[case("accountKey \"{S}\"")]
#[case("app=a,x.io/token={S},b=c")]
#[case("loading with AWS_SECRET_ACCESS_KEY={S} done")]
fn values_of_secret_names_go(#[case] pattern: &str) {
    let planted = "a1B2c3D4e5F6g7H8";
    let text = pattern.replace("{S}", planted);
    let got = redact(&text);
    assert!(!got.contains(planted), "{got}");
    assert!(got.contains(REDACTED), "{got}");
    assert_eq!(redact(&got), got);
}

#[rstest]
#[case("sk-")]
#[case("hf_")]
#[case("ghp_")]
#[case("github_pat_")]
#[case("glpat-")]
#[case("nvapi-")]
#[case("AKIA")]
#[case("ya29.")]
fn tokens_go_by_their_shape(#[case] shape: &str) {
    let planted = secret(shape);
    let text = format!("downloading with {planted} from the hub");
    assert!(!redact(&text).contains(&planted), "{}", redact(&text));
}

#[rstest]
#[case("secret \"hf-token-2\" not found")]
#[case("secret hf-token-2 not found")]
#[case("token limit 8192 reached")]
#[case("the password is wrong")]
#[case("token ids of 32 requests")]
#[case("prod/sk-learn-serving-6d4f9c7b8-x2x9z is Ready")]
#[case("pypi-server-0 and pypi-mirror-cache-6d4f9c7b8-x2x9z")]
fn prose_and_names_of_objects_stay(#[case] text: &str) {
    assert_eq!(redact(text), text);
}

#[test]
fn a_web_token_and_a_private_key_go() {
    let token = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "abc-DEF_123"].join(".");
    assert!(!redact(&format!("jwt {token} end")).contains("eyJ"));
    let key = format!("x -----BEGIN RSA {k}----- MIIabc -----END RSA {k}----- y", k = "PRIVATE KEY");
    assert_eq!(redact(&key), "x [redacted] y");
    let cut = format!("-----BEGIN {}----- MIIabc", "PRIVATE KEY");
    assert_eq!(redact(&cut), REDACTED);
}

#[rstest]
#[case("max_tokens=5 num_tokens: 7 tokens=9")]
#[case("max_total_num_tokens=1234, token usage: 0.5")]
#[case("Avg prompt throughput: 0.0 tokens/s, Running: 0 reqs")]
#[case("vllm:generation_tokens_total{engine=\"0\"} 5")]
#[case("secret \"hf-secret\" not found")]
#[case("secretName: my-tls")]
#[case("secretKeyRef is set")]
#[case("image registry.local/engines/vllm-openai:v0.19.0@sha256:7c4d4d9d74875b44bd916370b9911d38")]
#[case("http://10.0.0.1:8000/v1/models?limit=5")]
#[case("Basic auth is not supported here")]
#[case("the task-key takes long")]
#[case("api_key=$(API_KEY)")]
#[case("--tokenizer /models/a --max-model-len 8192")]
#[case("pod qwen-a-7c9d5b6f44-2xkqv")]
fn what_is_no_secret_stays(#[case] text: &str) {
    assert_eq!(redact(text), text);
}

proptest! {
    #[test]
    fn a_planted_secret_never_survives(before in "[ -~]{0,30}", after in "[ -~]{0,30}", which in 0usize..6) {
        let planted = secret("");
        let text = match which {
            0 => format!("{before} --api-key {planted} {after}"),
            1 => format!("{before} password={planted} {after}"),
            2 => format!("{before} Authorization: Bearer {planted} {after}"),
            3 => format!("{before} https://u:{planted}@h/ {after}"),
            4 => format!("{before} {} {after}", secret("hf_")),
            _ => format!("{before} \"apiKey\": \"{planted}\" {after}"),
        };
        let got = redact(&text).into_owned();
        prop_assert!(!got.contains(&planted), "{got}");
        prop_assert_eq!(redact(&got).into_owned(), got.clone());
    }

    #[test]
    fn any_text_is_fine(text in any::<String>()) {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once).into_owned(), once.clone());
    }
}
