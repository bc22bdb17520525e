#include "nuc_fpga.h"

#include <stdbool.h>
#include <stddef.h>

#include "nuc_fpga_registers.h"
#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#ifdef UACCEL_ACCOUNTING
#include "uaccel_log.h" /* a session server is there to tell */
#define LOG_INFO(text) uaccel_log(UACCEL_LOG_INFO, (text))
#else
#define LOG_INFO(text) ((void)(text))
#endif

#define LARGEST_TENSOR 0x7FFFFFFF
#define POLLS_AT_LEAST 1000u

struct text {
    char bytes[80];
    uint32_t used;
};

struct memory {
    const void *at;
    uint32_t bytes;
};

struct job {
    uint32_t command;
    struct memory features;
    struct memory kernel;
    struct memory out;
    uint64_t products; /* to be added up */
};

static void *nuc_fpga;

static void add(struct text *text, const char *more)
{
    while (*more != '\0' && text->used + 1u < sizeof text->bytes) {
        text->bytes[text->used++] = *more++;
    }
    text->bytes[text->used] = '\0';
}

static void add_hex(struct text *text, uint32_t value)
{
    char digits[11] = "0x00000000";
    for (uint32_t i = 0; i < 8u; ++i) {
        digits[2u + i] = "0123456789abcdef"[value >> (28u - 4u * i) & 15u];
    }
    add(text, digits);
}

static int32_t failed(int32_t code, const char *what)
{
    UACCEL_ACCOUNT_FAILURE(what);
    return code;
}

static int32_t failed_at(int32_t code, const char *before, uint32_t value, const char *after)
{
    struct text text = {{0}, 0};
    add(&text, before);
    add_hex(&text, value);
    add(&text, after);
    return failed(code, text.bytes);
}

int32_t TVMDeviceNucFpgaActivate(void *device)
{
    nuc_fpga = NULL; /* until it is known to be a good one */
    const uint32_t identity = uaccel_hal_read32(device, NUC_FPGA_IDENTITY_AT);
    if (identity == UINT32_MAX) {
        return failed(UACCEL_ACCELERATOR_GONE, "nuc_fpga does not answer: its identity reads all ones");
    }
    if (identity != NUC_FPGA_IDENTITY) {
        return failed_at(UACCEL_ACCELERATOR_IDENTITY, "identity ", identity, " is not that of a nuc_fpga");
    }
    const uint32_t version = uaccel_hal_read32(device, NUC_FPGA_VERSION_AT);
    if (version >> 16 != NUC_FPGA_MAJOR) {
        return failed_at(UACCEL_ACCELERATOR_VERSION, "nuc_fpga has version ", version, ", the driver knows 0x0001xxxx");
    }
    struct text found = {{0}, 0};
    add(&found, "nuc_fpga found, version ");
    add_hex(&found, version);
    LOG_INFO(found.bytes);
    nuc_fpga = device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceNucFpgaOpen(void *device)
{
    uaccel_hal_write32(device, NUC_FPGA_INTERRUPT_AT, 1);
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceNucFpgaClose(void *device)
{
    uaccel_hal_write32(device, NUC_FPGA_INTERRUPT_AT, 0);
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceNucFpgaDeactivate(void *device)
{
    (void)device;
    nuc_fpga = NULL;
    return UACCEL_ACCELERATOR_OK;
}

/* Of elements of so many bytes; 0 where there is no such tensor. */
static uint32_t size_of(uint32_t element, int a, int b, int c, int d)
{
    const int extents[] = {a, b, c, d};
    uint64_t bytes = element;
    for (uint32_t i = 0; i < 4u; ++i) {
        if (extents[i] < 1) {
            return 0;
        }
        bytes *= (uint32_t)extents[i]; /* no more than 62 bits */
        if (bytes > LARGEST_TENSOR) {
            return 0;
        }
    }
    return (uint32_t)bytes;
}

/* How many windows there are in one direction; 0 where none fits. */
static int windows(int extent, int pad, int window, int stride)
{
    const int64_t room = (int64_t)extent + 2 * (int64_t)pad - window;
    const bool bad = extent < 1 || pad < 0 || window < 1 || stride < 1 || room < 0 || room > LARGEST_TENSOR;
    return bad ? 0 : (int)(room / stride + 1);
}

static int32_t reason(void)
{
    const uint32_t error = uaccel_hal_read32(nuc_fpga, NUC_FPGA_ERROR_AT);
    switch (error) {
    case UINT32_MAX:
        return failed(UACCEL_ACCELERATOR_GONE, "nuc_fpga does not answer: its error register reads all ones");
    case NUC_FPGA_BAD_PARAMETER:
        return failed(UACCEL_ACCELERATOR_ARGUMENT, "nuc_fpga refuses the job: a parameter is out of its range");
    case NUC_FPGA_BUS_ERROR:
        return failed(UACCEL_ACCELERATOR_BUS, "nuc_fpga was refused access to memory");
    default:
        return failed_at(UACCEL_ACCELERATOR_ERROR, "nuc_fpga reports error ", error, "");
    }
}

/* A look takes several of the device's cycles: it would have ended with a single product in each. */
static uint32_t polls_for(const struct job *job)
{
    return job->products > UINT32_MAX - POLLS_AT_LEAST ? UINT32_MAX : (uint32_t)job->products + POLLS_AT_LEAST;
}

static uint64_t cycles_of_the_job(void)
{
    const uint64_t high = uaccel_hal_read32(nuc_fpga, NUC_FPGA_CYCLES_HIGH_AT);
    return high << 32 | uaccel_hal_read32(nuc_fpga, NUC_FPGA_CYCLES_LOW_AT);
}

/* The parameters are in their registers. */
static int32_t run(const struct job *job)
{
    uaccel_hal_clean(job->features.at, job->features.bytes);
    uaccel_hal_clean(job->kernel.at, job->kernel.bytes);
    uaccel_hal_clean(job->out.at, job->out.bytes);
    uaccel_hal_write32(nuc_fpga, NUC_FPGA_CONTROL_AT, job->command);
    int32_t code = uaccel_hal_wait(nuc_fpga, NUC_FPGA_STATUS_AT, NUC_FPGA_DONE, NUC_FPGA_DONE, polls_for(job));
    if (code != UACCEL_ACCELERATOR_OK) {
        uaccel_hal_write32(nuc_fpga, NUC_FPGA_STOP_AT, 1); /* nothing may write to memory that others use by then */
    } else if ((uaccel_hal_read32(nuc_fpga, NUC_FPGA_STATUS_AT) & NUC_FPGA_FAILED) != 0) {
        code = reason();
    } else {
        UACCEL_ACCOUNT(1, cycles_of_the_job());
    }
    uaccel_hal_write32(nuc_fpga, NUC_FPGA_STATUS_AT, 0);
    uaccel_hal_invalidate(job->out.at, job->out.bytes);
    return code;
}

static int32_t start(const struct job *job, const int *parameters)
{
    const struct memory memories[] = {job->features, job->kernel, job->out};
    for (uint32_t i = 0; i < 3u; ++i) {
        const uint32_t address = uaccel_hal_address(memories[i].at);
        if (memories[i].bytes == 0) {
            return failed(UACCEL_ACCELERATOR_ARGUMENT, "nuc_fpga: a tensor would be empty or too large");
        }
        if (address == 0) {
            return failed(UACCEL_ACCELERATOR_BUS, "nuc_fpga: a tensor lies in memory that devices do not reach");
        }
        uaccel_hal_write32(nuc_fpga, NUC_FPGA_FEATURES_AT + 4u * i, address);
    }
    for (uint32_t i = 0; i < NUC_FPGA_PARAMETERS; ++i) {
        uaccel_hal_write32(nuc_fpga, NUC_FPGA_PARAMETERS_AT + 4u * i, (uint32_t)parameters[i]);
    }
    return run(job);
}

int nuc_fpga_conv2d(int8_t* feature_map, int8_t* kernel, int* out, int batch, int in_ch, int in_height, int in_width,
                    int kernel_number, int group, int pad_height, int pad_width, int kernel_height, int kernel_width,
                    int stride_height, int stride_width)
{
    const int parameters[NUC_FPGA_PARAMETERS] = {batch,     in_ch,        in_height,     in_width,
                                                 kernel_number, group,    pad_height,    pad_width,
                                                 kernel_height, kernel_width, stride_height, stride_width};
    const int rows = windows(in_height, pad_height, kernel_height, stride_height);
    const int columns = windows(in_width, pad_width, kernel_width, stride_width);
    const int depth = group < 1 ? 0 : in_ch / group;
    const uint32_t kernel_bytes = size_of(1, kernel_number, depth, kernel_height, kernel_width);
    const uint64_t places = (uint64_t)size_of(1, batch, rows, columns, 1);
    const struct job job = {
        .command = NUC_FPGA_CONV2D,
        .features = {feature_map, size_of(1, batch, in_ch, in_height, in_width)},
        .kernel = {kernel, kernel_bytes},
        .out = {out, size_of(sizeof *out, batch, kernel_number, rows, columns)},
        .products = places * kernel_bytes,
    };
    return start(&job, parameters);
}

int nuc_fpga_dense(int8_t* feature_map, int8_t* kernel, int* out, int batch, int in_ch, int out_ch)
{
    const int parameters[NUC_FPGA_PARAMETERS] = {batch, in_ch, 1, 1, out_ch};
    const struct job job = {
        .command = NUC_FPGA_DENSE,
        .features = {feature_map, size_of(1, batch, in_ch, 1, 1)},
        .kernel = {kernel, size_of(1, out_ch, in_ch, 1, 1)},
        .out = {out, size_of(sizeof *out, batch, out_ch, 1, 1)},
        .products = (uint64_t)size_of(1, batch, in_ch, 1, 1) * (uint32_t)(out_ch < 1 ? 0 : out_ch),
    };
    return start(&job, parameters);
}
