// A gate before every batch of llama.cpp's server, linked in place of `llama_process` (--wrap): the server's own source is
// unchanged. Where GATE is the number of an open pipe, a line of the log says what the batch has, and the batch waits for
// a byte from the pipe; another line says how the call ended. Without GATE nothing changes.

#include "llama-batch.h"
#include "llama.h"
#include "log.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

extern "C" int32_t __real_llama_process(llama_context * ctx, llama_process_type type, llama_batch_ext * batch);

// Runs of tokens of one slot, as SLOT:FIRST_POSITION:TOKENS:WITH_OUTPUT.
static std::string runs(const llama_batch_ext & batch) {
    std::string text;
    for (size_t at = 0; at < batch.tokens.size();) {
        const llama_seq_id slot = *batch.tokens[at].seq_ids.begin();
        const size_t first = at;
        bool output = false;
        for (; at < batch.tokens.size() && *batch.tokens[at].seq_ids.begin() == slot; at++) {
            output |= batch.tokens[at].output;
        }
        text += " " + std::to_string(slot) + ":" + std::to_string(batch.tokens[first].pos[0]) + ":" +
                std::to_string(at - first) + ":" + std::to_string(int(output));
    }
    return text;
}

extern "C" int32_t __wrap_llama_process(llama_context * ctx, llama_process_type type, llama_batch_ext * batch) {
    static const char * gate = std::getenv("GATE");
    if (!gate) {
        return __real_llama_process(ctx, type, batch);
    }
    LOG_INF("gate: batch%s\n", runs(*batch).c_str());
    char byte = 0;
    if (read(std::atoi(gate), &byte, 1) != 1) {
        std::exit(1);
    }
    const int32_t ended = __real_llama_process(ctx, type, batch);
    LOG_INF("gate: ended %d\n", ended);
    return ended;
}
