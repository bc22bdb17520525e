#include "uaccel_server.h"

#include <string.h>

#include "uaccel_account.h"
#include "uaccel_answer.h"
#include "uaccel_frame.h"
#include "uaccel_infer.h"
#include "uaccel_inputs.h"
#include "uaccel_line.h"
#include "uaccel_log.h"
#include "uaccel_model.h"
#include "uaccel_port.h"
#include "uaccel_stream.h"
#include "uaccel_tensors.h"
#include "uaccel_watch.h"

/* Sequences beyond the one that is expected, in half of their circle, are to come; those before it have been. */
#define SEQUENCE_PAST 0x8000u

/* What follows in a `run` came later: hosts may leave it away. */
#define RUN_BYTES_AT_LEAST (UACCEL_RUN_OUTPUTS_AT + 1u)

/* Of a record of the accounts: layer, calls, cycles, fallbacks. */
#define ACCOUNT_RECORD_BYTES 18

typedef char uaccel_assert_hello_fits[UACCEL_BODY_BYTES >= UACCEL_HELLO_REPLY_BYTES + 24u ? 1 : -1];
typedef char uaccel_assert_body_fits_16_bits[UACCEL_BODY_BYTES <= 65000 ? 1 : -1];

static struct {
    uint32_t token;       /* 0: no session */
    uint32_t run;         /* whose outputs are there; 0: nobody's */
    uint16_t expected;    /* the sequence of the next request */
    bool told;            /* that something is missing before it */
    bool passed_over;     /* requests that came while a run was going on */
    uint8_t verbosity;
    uint16_t log_lines;
    bool has_run;         /* a request of this session has run the model: */
    uint16_t run_sequence;
    struct uaccel_answer run_answer;
} session;

/* What requests that run the model answer is kept: they are not served twice. */
static void answer_run(const struct uaccel_request *request, const struct uaccel_answer *what)
{
    session.has_run = true;
    session.run_sequence = request->sequence;
    session.run_answer = *what;
    uaccel_answer(request, what->type, what->body, what->bytes);
}

static void answer_run_again(const struct uaccel_request *request)
{
    if (session.has_run && session.run_sequence == request->sequence) {
        uaccel_answer(request, session.run_answer.type, session.run_answer.body, session.run_answer.bytes);
    } else {
        uaccel_refuse(request, UACCEL_ERROR_FORGOTTEN, 0);
    }
}

static uint32_t description_bytes(void)
{
    uint32_t bytes = 0;
    for (const char *const *piece = uaccel_model.description; *piece != NULL; ++piece) {
        bytes += (uint32_t)strlen(*piece);
    }
    return bytes;
}

static void describe_model(uint8_t *to)
{
    const struct uaccel_model *const model = &uaccel_model;
    uaccel_put16(to + UACCEL_HELLO_REPLY_VERSION_AT, UACCEL_PROTOCOL_VERSION);
    uaccel_put16(to + UACCEL_HELLO_REPLY_FLAGS_AT, (uaccel_watch_can() ? UACCEL_FLAG_OBSERVE : 0u) |
                                                       (model->workspace_io ? UACCEL_FLAG_WORKSPACE_IO : 0u) |
                                                       (model->reset != NULL ? UACCEL_FLAG_STATE : 0u));
    uaccel_put16(to + UACCEL_HELLO_REPLY_BODY_BYTES_AT, UACCEL_BODY_BYTES);
    uaccel_put32(to + UACCEL_HELLO_REPLY_RECEIVE_BYTES_AT, UACCEL_PORT_RECEIVE_BYTES);
    uaccel_put16(to + UACCEL_HELLO_REPLY_INPUTS_AT, model->input_count);
    uaccel_put16(to + UACCEL_HELLO_REPLY_OUTPUTS_AT, model->output_count);
    uaccel_put16(to + UACCEL_HELLO_REPLY_LAYERS_AT, model->layer_count);
    uaccel_put32(to + UACCEL_HELLO_REPLY_INPUT_BYTES_AT, uaccel_tensors_bytes(model->inputs, model->input_count));
    uaccel_put32(to + UACCEL_HELLO_REPLY_OUTPUT_BYTES_AT, uaccel_tensors_bytes(model->outputs, model->output_count));
    uaccel_put32(to + UACCEL_HELLO_REPLY_DESCRIPTION_BYTES_AT, description_bytes());
    uaccel_put32(to + UACCEL_HELLO_REPLY_TICKS_PER_SECOND_AT, uaccel_port_ticks_per_second());
    memcpy(to + UACCEL_HELLO_REPLY_MODEL_HASH_AT, model->hash, sizeof model->hash);
    memcpy(to + UACCEL_HELLO_REPLY_BUILD_AT, model->build, sizeof model->build);
}

static void hello(const struct uaccel_request *request)
{
    uint8_t body[UACCEL_HELLO_REPLY_BYTES];
    const bool same_version =
        request->bytes >= UACCEL_HELLO_BYTES &&
        uaccel_get16(request->body + UACCEL_HELLO_VERSION_AT) == UACCEL_PROTOCOL_VERSION;
    if (same_version && request->token != session.token) {
        memset(&session, 0, sizeof session);
        uaccel_inputs_spend();
        session.token = request->token;
        session.expected = 1;
        session.verbosity = UACCEL_LOG_WARNING;
        uaccel_account_clear();
    }
    describe_model(body);
    uaccel_frame_begin(UACCEL_TYPE_HELLO_REPLY, request->sequence, request->token, false);
    uaccel_frame_add(body, sizeof body);
    uaccel_frame_add(uaccel_model.name, uaccel_cut(uaccel_model.name, UACCEL_BODY_BYTES - sizeof body));
    uaccel_frame_end();
}

static void write_inputs(const struct uaccel_request *request)
{
    const uint32_t offset = uaccel_get32(request->body + UACCEL_WRITE_OFFSET_AT);
    const uint32_t bytes = request->bytes - UACCEL_WRITE_BYTES;
    const uint32_t room = uaccel_tensors_bytes(uaccel_model.inputs, uaccel_model.input_count);
    if (offset > room || bytes > room - offset) {
        uaccel_refuse(request, UACCEL_ERROR_RANGE, room);
        return;
    }
    if (!request->again && uaccel_inputs_write(offset, request->body + UACCEL_WRITE_BYTES, bytes) &&
        uaccel_model.workspace_io) {
        session.run = 0; /* inputs in the workspace take the place of the last outputs */
    }
    uaccel_acknowledge(request, UACCEL_TYPE_WRITE_REPLY);
}

/* Of this model and of this place of its tensors alone: another's bytes would be taken for ours. The mark stays. */
static void write_state(const struct uaccel_request *request)
{
    const uint32_t offset = uaccel_get32(request->body + UACCEL_WRITE_STATE_OFFSET_AT);
    const uint32_t bytes = request->bytes - UACCEL_WRITE_STATE_BYTES;
    const bool none = uaccel_model.state_bytes < UACCEL_STATE_MARK_BYTES;
    const uint32_t room = none ? 0 : uaccel_model.state_bytes - UACCEL_STATE_MARK_BYTES;
    uint8_t *const state = none ? NULL : uaccel_model.state();
    if (!none && memcmp(state + room, request->body + UACCEL_WRITE_STATE_MARK_AT, UACCEL_STATE_MARK_BYTES) != 0) {
        uaccel_refuse(request, UACCEL_ERROR_STATE, uaccel_get32(state + room));
    } else if (none || offset > room || bytes > room - offset) {
        uaccel_refuse(request, UACCEL_ERROR_RANGE, room);
    } else {
        if (!request->again && bytes != 0) {
            memcpy(state + offset, request->body + UACCEL_WRITE_STATE_BYTES, (size_t)bytes);
        }
        uaccel_acknowledge(request, UACCEL_TYPE_WRITE_STATE_REPLY);
    }
}

static void stream_tensors(struct uaccel_stream *stream, const struct uaccel_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        uaccel_stream_add(stream, tensors[i].data, tensors[i].bytes);
    }
}

/* Ask for what is missing. */
static void expect(void)
{
    if (session.token != 0) {
        uaccel_send(UACCEL_TYPE_EXPECT, session.expected, session.token, NULL, 0);
        session.told = true;
        session.passed_over = false;
    }
}

/* A run that is served. Its request's body is gone once the line has been looked at. */
struct job {
    uint32_t run;
    uint32_t count;
    uint32_t input_crc;
    bool with_outputs;
    bool continues;
};

static struct job job_of(const struct uaccel_request *request)
{
    return (struct job){
        uaccel_get32(request->body + UACCEL_RUN_RUN_AT),
        uaccel_get32(request->body + UACCEL_RUN_COUNT_AT),
        uaccel_get32(request->body + UACCEL_RUN_INPUT_CRC_AT),
        request->body[UACCEL_RUN_OUTPUTS_AT] != 0,
        request->bytes > UACCEL_RUN_CONTINUES_AT && request->body[UACCEL_RUN_CONTINUES_AT] != 0,
    };
}

/* Whether it can be done; else `result` says why not. */
static bool is_possible(const struct job *job, struct uaccel_answer *result)
{
    const uint32_t input_crc = uaccel_inputs_crc();
    if (job->count > UACCEL_MOST_RUNS) {
        *result = uaccel_error_answer(UACCEL_ERROR_COUNT, UACCEL_MOST_RUNS);
    } else if (uaccel_inputs_are_spent(job->count)) {
        *result = uaccel_error_answer(UACCEL_ERROR_SPENT, uaccel_inputs_written());
    } else if (input_crc != job->input_crc) {
        *result = uaccel_error_answer(UACCEL_ERROR_INPUT, input_crc);
    } else {
        return true;
    }
    return false;
}

/* After a run that went well. */
static void deliver(const struct uaccel_request *request, const struct job *job, uint8_t *reply)
{
    struct uaccel_stream stream = {request->token, request->sequence, 0, UINT32_MAX, 0};
    const uint32_t crc = uaccel_tensors_crc(0, uaccel_model.outputs, uaccel_model.output_count);
    session.run = job->run;
    uaccel_put32(reply + UACCEL_RUN_REPLY_OUTPUT_CRC_AT, crc);
    if (job->with_outputs) {
        stream_tensors(&stream, uaccel_model.outputs, uaccel_model.output_count);
    }
}

static bool is_called_off(void);

static void run(const struct uaccel_request *request)
{
    struct uaccel_answer result = {UACCEL_TYPE_RUN_REPLY, UACCEL_RUN_REPLY_BYTES, {0}};
    if (request->again) {
        answer_run_again(request);
        return;
    }
    uaccel_tell_started(request);
    session.run = 0;
    const struct job job = job_of(request);
    if (is_possible(&job, &result)) {
        uaccel_inputs_spend();
        if (!uaccel_infer(job.count, job.continues, is_called_off, result.body)) {
            return; /* nobody waits for it any more */
        }
        if (uaccel_get32(result.body + UACCEL_RUN_REPLY_STATUS_AT) == 0) {
            deliver(request, &job, result.body);
        } else {
            uaccel_add_failure(&result);
        }
    }
    answer_run(request, &result);
    if (session.passed_over) {
        expect();
    }
}

static struct uaccel_answer read_answer(const struct uaccel_stream *stream)
{
    struct uaccel_answer done = {UACCEL_TYPE_READ_REPLY, UACCEL_READ_REPLY_BYTES, {0}};
    uaccel_put32(done.body + UACCEL_READ_REPLY_OBJECT_BYTES_AT, stream->at);
    return done;
}

static void finish_read(const struct uaccel_request *request, const struct uaccel_stream *stream)
{
    const struct uaccel_answer done = read_answer(stream);
    uaccel_answer(request, done.type, done.body, done.bytes);
}

/* The layers' objects: the model makes them anew each time. */
static void read_layers(const struct uaccel_request *request, struct uaccel_stream *stream)
{
    struct uaccel_answer result;
    if (!uaccel_watch_can()) {
        uaccel_refuse(request, UACCEL_ERROR_OBSERVE, 0);
        return;
    }
    if (request->again) {
        answer_run_again(request);
        return;
    }
    uaccel_tell_started(request);
    session.run = 0;
    if (uaccel_inputs_are_spent(1)) {
        result = uaccel_error_answer(UACCEL_ERROR_SPENT, uaccel_inputs_written());
        answer_run(request, &result);
        return;
    }
    uaccel_inputs_spend();
    const int32_t status = uaccel_watch_run(stream, request->body[UACCEL_READ_OBJECT_AT],
                                            uaccel_get16(request->body + UACCEL_READ_INDEX_AT));
    result = status == 0 ? read_answer(stream) : uaccel_error_answer(UACCEL_ERROR_MODEL, (uint32_t)status);
    if (status != 0) {
        uaccel_add_failure(&result);
    }
    answer_run(request, &result);
}

static void read_tensors(const struct uaccel_request *request, struct uaccel_stream *stream,
                         const struct uaccel_tensor *tensors, uint32_t count)
{
    stream_tensors(stream, tensors, count);
    finish_read(request, stream);
}

static void read_outputs(const struct uaccel_request *request, struct uaccel_stream *stream)
{
    if (session.run == 0 || session.run != uaccel_get32(request->body + UACCEL_READ_RUN_AT)) {
        uaccel_refuse(request, UACCEL_ERROR_RUN, session.run);
        return;
    }
    read_tensors(request, stream, uaccel_model.outputs, uaccel_model.output_count);
}

static void read_state(const struct uaccel_request *request, struct uaccel_stream *stream)
{
    if (uaccel_model.state_bytes != 0) {
        uaccel_stream_add(stream, uaccel_model.state(), uaccel_model.state_bytes);
    }
    finish_read(request, stream);
}

static void read_description(const struct uaccel_request *request, struct uaccel_stream *stream)
{
    for (const char *const *piece = uaccel_model.description; *piece != NULL; ++piece) {
        uaccel_stream_add(stream, *piece, (uint32_t)strlen(*piece));
    }
    finish_read(request, stream);
}

/* How many inferences, and a record for each layer in which an accelerator was called. */
static void read_accounts(const struct uaccel_request *request, struct uaccel_stream *stream)
{
    uint8_t record[ACCOUNT_RECORD_BYTES];
    uaccel_put32(record, uaccel_account_inferences());
    uaccel_stream_add(stream, record, 4);
    for (uint32_t layer = 0; uaccel_model.accounts != NULL && layer < uaccel_model.layer_count; ++layer) {
        const struct uaccel_account *const account = &uaccel_model.accounts[layer];
        if (account->calls != 0 || account->fallbacks != 0) {
            uaccel_put16(record, layer);
            uaccel_put32(record + 2, account->calls);
            uaccel_put64(record + 6, account->cycles);
            uaccel_put32(record + 14, account->fallbacks);
            uaccel_stream_add(stream, record, sizeof record);
        }
    }
    finish_read(request, stream);
}

static void read_object(const struct uaccel_request *request)
{
    const uint8_t object = request->body[UACCEL_READ_OBJECT_AT];
    const uint32_t offset = uaccel_get32(request->body + UACCEL_READ_OFFSET_AT);
    const uint32_t length = uaccel_get32(request->body + UACCEL_READ_LENGTH_AT);
    const uint32_t end = length > UINT32_MAX - offset ? UINT32_MAX : offset + length;
    struct uaccel_stream stream = {request->token, request->sequence, offset, end, 0};
    switch (object) {
    case UACCEL_OBJECT_DESCRIPTION:
        read_description(request, &stream);
        break;
    case UACCEL_OBJECT_INPUTS:
        read_tensors(request, &stream, uaccel_model.inputs, uaccel_model.input_count);
        break;
    case UACCEL_OBJECT_OUTPUTS:
        read_outputs(request, &stream);
        break;
    case UACCEL_OBJECT_LAYERS:
    case UACCEL_OBJECT_TIMES:
        read_layers(request, &stream);
        break;
    case UACCEL_OBJECT_ACCOUNTS:
        read_accounts(request, &stream);
        break;
    case UACCEL_OBJECT_STATE:
        read_state(request, &stream);
        break;
    default:
        uaccel_refuse(request, UACCEL_ERROR_OBJECT, object);
        break;
    }
}

static void reset(const struct uaccel_request *request)
{
    uaccel_acknowledge(request, UACCEL_TYPE_RESET_REPLY);
    uaccel_port_reset();
}

static void set_verbosity(const struct uaccel_request *request)
{
    session.verbosity = request->body[UACCEL_VERBOSITY_LEVEL_AT];
    uaccel_acknowledge(request, UACCEL_TYPE_VERBOSITY_REPLY);
}

static void serve(const struct uaccel_request *request)
{
    static const struct {
        uint8_t type;
        uint8_t bytes; /* the shortest body */
        void (*serve)(const struct uaccel_request *request);
    } table[] = {
        {UACCEL_TYPE_WRITE, UACCEL_WRITE_BYTES, write_inputs},
        {UACCEL_TYPE_RUN, RUN_BYTES_AT_LEAST, run},
        {UACCEL_TYPE_READ, UACCEL_READ_BYTES, read_object},
        {UACCEL_TYPE_VERBOSITY, UACCEL_VERBOSITY_BYTES, set_verbosity},
        {UACCEL_TYPE_RESET, 0, reset},
        {UACCEL_TYPE_WRITE_STATE, UACCEL_WRITE_STATE_BYTES, write_state},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) {
        if (table[i].type != request->type) {
            continue;
        }
        if (request->bytes >= table[i].bytes) {
            table[i].serve(request);
        } else {
            uaccel_refuse(request, UACCEL_ERROR_LENGTH, request->bytes);
        }
        return;
    }
    uaccel_refuse(request, UACCEL_ERROR_TYPE, request->type);
}

/* Requests are served in their order, each once: what is too early is dropped, what comes again is only answered. */
static void take_in_order(struct uaccel_request *request)
{
    const uint16_t ahead = (uint16_t)(request->sequence - session.expected);
    if (ahead != 0 && ahead < SEQUENCE_PAST) {
        if (!session.told) {
            expect();
        }
        return;
    }
    if (ahead == 0) {
        session.expected++;
        session.told = false;
    }
    request->again = ahead != 0;
    serve(request);
}

/* What has arrived. */
static struct uaccel_request request_read(void)
{
    const struct uaccel_frame_reader *const reader = uaccel_line_reader();
    const uint8_t *const packet = reader->packet;
    return (struct uaccel_request){
        packet[UACCEL_PACKET_TYPE_AT],
        uaccel_get16(packet + UACCEL_PACKET_SEQUENCE_AT),
        uaccel_get32(packet + UACCEL_PACKET_TOKEN_AT),
        packet + UACCEL_PACKET_BYTES,
        reader->used - UACCEL_PACKET_BYTES,
        false,
    };
}

static void take(struct uaccel_request *request)
{
    if (request->type >= UACCEL_FROM_DEVICE || request->token == 0) {
        return; /* our own words on a line that sends them back, or nobody's */
    }
    if (request->type == UACCEL_TYPE_HELLO) {
        hello(request);
    } else if (request->token != session.token) {
        uaccel_refuse(request, UACCEL_ERROR_STALE, session.token);
    } else {
        take_in_order(request);
    }
}

/* While a run goes on: who greets or resets is served. What else this session asks for is passed over, there is no
 * room to keep it; it is asked for when the run has been answered. */
static void take_meanwhile(struct uaccel_request *request)
{
    const bool ours = request->token == session.token && request->type < UACCEL_FROM_DEVICE;
    if (!ours || request->type == UACCEL_TYPE_HELLO) {
        take(request);
    } else if (request->type == UACCEL_TYPE_RESET) {
        reset(request);
    } else {
        session.passed_over = true;
    }
}

/* Whether the session is another one after the rest of the chunk, or none. */
static bool is_left_meanwhile(void)
{
    const uint32_t token = session.token;
    enum uaccel_frame_state state;
    while (session.token == token && (state = uaccel_line_next()) != UACCEL_FRAME_OPEN) {
        if (state == UACCEL_FRAME_WHOLE) {
            struct uaccel_request request = request_read();
            take_meanwhile(&request);
        } else {
            session.passed_over = true;
        }
    }
    return session.token != token;
}

/* Between two inferences of a run. At most one more chunk each time: a flood must not keep the run from going on. */
static bool is_called_off(void)
{
    if (is_left_meanwhile()) {
        return true;
    }
    return uaccel_port_has_arrived() && (uaccel_line_take() != 0 || is_left_meanwhile());
}

void uaccel_server_start(void)
{
    uint8_t body[UACCEL_BOOT_BYTES];
    memset(&session, 0, sizeof session);
    uaccel_inputs_spend();
    uaccel_line_start();
    session.verbosity = UACCEL_LOG_WARNING;
    uaccel_put16(body + UACCEL_BOOT_VERSION_AT, UACCEL_PROTOCOL_VERSION);
    uaccel_frame_begin(UACCEL_TYPE_BOOT, 0, 0, true);
    uaccel_frame_add(body, sizeof body);
    uaccel_frame_end();
}

int32_t uaccel_server_poll(void)
{
    const int32_t status = uaccel_line_take();
    enum uaccel_frame_state state;
    while ((state = uaccel_line_next()) != UACCEL_FRAME_OPEN) {
        if (state == UACCEL_FRAME_WHOLE) {
            struct uaccel_request request = request_read();
            take(&request);
        } else {
            expect();
        }
    }
    return status;
}

void uaccel_serve(void)
{
    uaccel_server_start();
    while (uaccel_server_poll() == 0) {
    }
}

void uaccel_server_fault(const char *text)
{
    uaccel_frame_begin(UACCEL_TYPE_FAULT, 0, 0, true);
    uaccel_frame_add(text, uaccel_cut(text, UACCEL_BODY_BYTES));
    uaccel_frame_end();
}

void uaccel_log(uint8_t level, const char *text)
{
    if (level < session.verbosity) {
        return;
    }
    uaccel_frame_begin(UACCEL_TYPE_LOG, session.log_lines, session.token, false);
    uaccel_frame_add(&level, sizeof level);
    uaccel_frame_add(text, uaccel_cut(text, UACCEL_BODY_BYTES - UACCEL_LOG_BYTES));
    uaccel_frame_end();
    session.log_lines++;
}
