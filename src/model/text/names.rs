//! Names whose value is a secret: flags, variables, annotations, headers, JSON keys.

use super::redact::{REDACTED, redact};

/// Words that make a name secret, as whole words of it.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "token",
    "dsn",
    "bearer",
    "pwd",
];
/// Pairs of words that do so only together.
const SECRET_PAIRS: &[(&str, &str)] = &[
    ("api", "key"),
    ("private", "key"),
    ("access", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("auth", "key"),
    ("account", "key"),
    ("shared", "key"),
    ("connection", "string"),
    ("client", "key"),
    ("certificate", "data"),
    ("key", "data"),
];
/// Words that make the name one *of* a secret (where it is kept), or of something else altogether.
const HARMLESS_WORDS: &[&str] =
    &["name", "names", "ref", "refs", "file", "path", "namespace", "mount", "volume", "expiration", "expiry", "type", "count"];

/// Whether the value that belongs to this name is a secret: `HF_TOKEN`, `--api-key`, `x-api-key`, `clientSecret`; not `MAX_TOKENS`,
/// `TOKENIZER`, `secretName`.
pub fn is_secret_name(name: &str) -> bool {
    let words = words_of(name);
    if words.last().is_some_and(|last| HARMLESS_WORDS.contains(&last.as_str())) {
        return false;
    }
    let single = words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()));
    let pair = words.windows(2).any(|pair| match pair {
        [a, b] => SECRET_PAIRS.iter().any(|(x, y)| a == x && b == y),
        _ => false,
    });
    single || pair
}

/// The words of a name: parted at punctuation and at the humps of camel case, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in name.chars().take(256) {
        if !c.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        } else {
            if c.is_uppercase() && before.is_lowercase() && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// A command line with secrets taken out: `--api-key=X`, `--api-key` followed by X, and whatever [`redact`] finds in one element.
pub fn redact_args(args: &[String]) -> Vec<String> {
    let mut hide_next = false;
    args.iter()
        .map(|arg| {
            let hidden = std::mem::replace(&mut hide_next, false);
            if hidden && !arg.starts_with('-') {
                return REDACTED.to_owned();
            }
            let flag = arg.starts_with('-') && !arg.contains(char::is_whitespace);
            match arg.split_once('=') {
                Some((name, _)) if flag && is_secret_name(name) => format!("{}={REDACTED}", super::clean(name)),
                None if flag && is_secret_name(arg) => {
                    hide_next = true;
                    super::clean(arg).into_owned()
                }
                _ => redact(&super::clean(arg)).into_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("HF_TOKEN", true)]
    #[case("VLLM_API_KEY", true)]
    #[case("--api-key", true)]
    #[case("x-api-key", true)]
    #[case("clientSecret", true)]
    #[case("apiKey", true)]
    #[case("AWS_SECRET_ACCESS_KEY", true)]
    #[case("DATABASE_PASSWORD", true)]
    #[case("Authorization", true)]
    #[case("client-key-data", true)]
    #[case("client-certificate-data", true)]
    #[case("AZURE_STORAGE_CONNECTION_STRING", true)]
    #[case("MAX_TOKENS", false)]
    #[case("TOKENIZER", false)]
    #[case("TOKENIZERS_PARALLELISM", false)]
    #[case("secretName", false)]
    #[case("secretKeyRef", false)]
    #[case("KEY_VALUE_CACHE", false)]
    #[case("token-file", false)]
    #[case("app.kubernetes.io/name", false)]
    #[case("", false)]
    fn secret_names(#[case] name: &str, #[case] wanted: bool) {
        assert_eq!(is_secret_name(name), wanted);
    }

    #[rstest]
    #[case(&["--api-key", "abc", "--port", "8000"], &["--api-key", "[redacted]", "--port", "8000"])]
    #[case(&["--api-key=abc"], &["--api-key=[redacted]"])]
    #[case(&["--api-key", "--port"], &["--api-key", "--port"])]
    #[case(&["sh", "-c", "vllm serve m --api-key abc --port 1"], &["sh", "-c", "vllm serve m --api-key [redacted] --port 1"])]
    #[case(&["--max-num-batched-tokens", "8192"], &["--max-num-batched-tokens", "8192"])]
    #[case(&["--tokenizer", "m"], &["--tokenizer", "m"])]
    fn arguments(#[case] args: &[&str], #[case] wanted: &[&str]) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(redact_args(&args), wanted);
    }
}
