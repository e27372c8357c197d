//! Laws of the text that leaves: nothing that others wrote is executed, and each file reads back what was written.

mod faults;
mod files;
mod links;
mod outputs;
mod words;
mod writers;

/// Texts that a shell, a parser or a spreadsheet would obey, without characters that are refused in names.
pub const PAYLOADS: [&str; 30] = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "x; touch pwned #",
    "x && touch pwned",
    "x | touch pwned",
    ">pwned",
    "${IFS}touch${IFS}pwned",
    "$HOME",
    "$$(touch pwned)",
    "$(TRANSFER_PORT)",
    "${TRANSFER_PORT}",
    "}$(touch pwned)",
    "!touch",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "%n%s",
    "=cmd|'touch pwned'!A1",
    "+1+1",
    "@SUM(A1)",
    "a: b",
    "a #b",
    "&a",
    "*a",
    "- a",
    "[link](http://x)|`code`",
    "<script>touch</script>",
    "\\",
    "--help",
];

/// Texts with characters that act on a terminal, or that nobody sees.
pub const HIDDEN: [&str; 9] = [
    "x\ntouch pwned #",
    "x\r\ntouch pwned",
    "x\ttouch",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}]0;title\u{7}",
    "a\u{202e}b",
    "a\u{200b}b",
    "a\u{85}b\u{2028}c",
    "a\u{e0041}b",
];
