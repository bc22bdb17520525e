/* A plugin for QEMU that counts the instructions of firmware, exactly, and lets the firmware read the count.
 *
 *   -plugin count.so,function=ADDRESS,window=ADDRESS,skip=ADDRESS,until=ADDRESS[,blocks=FILE,marks=NUMBER
 *           [,flash=BEGIN:END:WAITS:LINE:CODE:DATA:BOTH:PREFETCH[+...]]]
 *
 * Each time that the instruction at `function` is about to be executed, the number of instructions executed so far is
 * written into the eight bytes at `window` of the guest. Instructions from `skip` up to, not including, `until` do not
 * count: interrupt handlers, and the functions that measure.
 *
 * QEMU tells where in its own memory an instruction lies; the window is in the same emulated memory, so its place
 * follows. That also works where the guest sees ROM, and needs no shared memory file.
 *
 * With `blocks` it also tells what was executed, for an estimate of cycles: each of the first `marks` times that
 * `function` is reached, FILE gets the line "mark COUNT", and a line for each block of instructions that was executed
 * since the time before: "NUMBER ADDRESS INSTRUCTIONS TIMES", ADDRESS in hexadecimal, and behind that the NUMBER of a
 * block that was executed directly before and how often it was that one, for each of the first few such blocks.
 *
 * `flash` describes memories that the CPU waits for, as flash.h models them: a block's line is then followed by
 * "waits NUMBER CODE DATA", the cycles that its executions waited for code and for data, where there were any. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flash.h"
#include "qemu_api.h"

#if UACCEL_QEMU_PLUGIN_API == 1

void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op, void *ptr,
                                                uint64_t imm);

static uint64_t counter;

static bool make_counter(void)
{
    return true;
}

static void count(struct qemu_plugin_insn *insn)
{
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &counter, 1);
}

static uint64_t counted(unsigned int cpu)
{
    (void)cpu;
    return counter;
}

#else

struct qemu_plugin_scoreboard;
typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, enum qemu_plugin_op op,
                                                         qemu_plugin_u64 entry, uint64_t imm);
uint64_t qemu_plugin_u64_get(qemu_plugin_u64 entry, unsigned int vcpu_index);

static qemu_plugin_u64 counter;

static bool make_counter(void)
{
    counter.score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
    return counter.score != NULL;
}

static void count(struct qemu_plugin_insn *insn)
{
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
}

static uint64_t counted(unsigned int cpu)
{
    return qemu_plugin_u64_get(counter, cpu);
}

#endif

static uint64_t function, window, skip, until;
static uint8_t *window_here; /* the window in QEMU's own memory */

/* The guest is little endian, whatever this computer is. */
static uint64_t read_window(void)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) {
        value |= (uint64_t)window_here[i] << 8 * i;
    }
    return value;
}

static void write_window(uint64_t value)
{
    for (unsigned i = 0; i < 8; ++i) {
        window_here[i] = (uint8_t)(value >> 8 * i & 0xFFu);
    }
}

enum { MOST_BEFORE = 4 };

/* Instructions of a block that one line of slow flash holds. */
struct fetch {
    struct flash *flash;
    uint64_t line;
    uint64_t instructions;
};

/* Instructions in a row that QEMU translates together: all of them are executed, or none. What is counted is counted
 * since the last mark. */
struct block {
    struct block *next;
    uint64_t number;
    uint64_t address;
    uint64_t instructions;
    uint64_t times;
    uint64_t code_waits, data_waits;
    struct fetch *fetches;
    size_t fetch_count;
    struct {
        const struct block *block;
        uint64_t times;
    } before[MOST_BEFORE];
};

static uint64_t marks; /* how many are left to write */
static FILE *blocks_file;
static struct block *blocks;
static struct block *previous; /* the last one executed */

static void begin_block(unsigned int cpu, void *data)
{
    struct block *const block = data;
    (void)cpu;
    block->times++;
    for (size_t i = 0; i < MOST_BEFORE; ++i) {
        if (block->before[i].block == NULL) {
            block->before[i].block = previous;
        }
        if (block->before[i].block == previous) {
            block->before[i].times++;
            break;
        }
    }
    previous = block;
    for (size_t i = 0; i < block->fetch_count; ++i) {
        const struct fetch *const fetch = &block->fetches[i];
        block->code_waits += flash_fetch(fetch->flash, fetch->line, fetch->instructions);
    }
}

/* It is called while its block is the last one that began. QEMU 7.2 leaves most reads out where a plugin asks for reads
 * alone, so this is called for what is written, too. */
static void access_data(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused)
{
    struct flash *const flash = qemu_plugin_mem_is_store(info) ? NULL : flash_at(address);
    (void)cpu;
    (void)unused;
    if (flash != NULL && previous != NULL) {
        previous->data_waits += flash_read(flash, address);
    }
}

static void add_fetch(struct block *block, uint64_t address)
{
    struct flash *const flash = flash_at(address);
    if (flash == NULL || block->fetches == NULL) {
        return;
    }
    const uint64_t line = address / flash->line;
    struct fetch *const last = block->fetch_count == 0 ? NULL : &block->fetches[block->fetch_count - 1];
    if (last != NULL && last->flash == flash && last->line == line) {
        last->instructions++;
    } else {
        block->fetches[block->fetch_count++] = (struct fetch){flash, line, 1};
    }
}

static struct block *follow(struct qemu_plugin_tb *tb, uint64_t address, uint64_t instructions)
{
    struct block *const block = calloc(1, sizeof *block);
    if (block == NULL) {
        return NULL; /* the blocks do not sum up to the count then, which whoever reads them sees */
    }
    block->next = blocks;
    block->number = blocks == NULL ? 1 : blocks->number + 1;
    block->address = address;
    block->instructions = instructions;
    block->fetches = flash_count == 0 ? NULL : calloc((size_t)instructions, sizeof *block->fetches);
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, begin_block, QEMU_PLUGIN_CB_NO_REGS, block);
    return block;
}

static void write_block(const struct block *block)
{
    fprintf(blocks_file, "%" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64, block->number, block->address,
            block->instructions, block->times);
    for (size_t i = 0; i < MOST_BEFORE && block->before[i].block != NULL; ++i) {
        fprintf(blocks_file, " %" PRIu64 " %" PRIu64, block->before[i].block->number, block->before[i].times);
    }
    fputc('\n', blocks_file);
    if (block->code_waits + block->data_waits != 0) {
        fprintf(blocks_file, "waits %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", block->number, block->code_waits,
                block->data_waits);
    }
}

static void write_mark(uint64_t count)
{
    fprintf(blocks_file, "mark %" PRIu64 "\n", count);
    for (struct block *block = blocks; block != NULL; block = block->next) {
        if (block->times != 0) {
            write_block(block);
            block->times = block->code_waits = block->data_waits = 0;
            memset(block->before, 0, sizeof block->before);
        }
    }
    fflush(blocks_file);
}

static void tell(unsigned int cpu, void *unused)
{
    (void)unused;
    write_window(counted(cpu));
    if (marks != 0) {
        write_mark(counted(cpu));
        marks--;
    }
}

/* What lies there must be what the linker put there, or the addresses are not this firmware's. */
static bool find_window(const struct qemu_plugin_insn *insn)
{
    static bool known;
    uint8_t *const here = qemu_plugin_insn_haddr(insn);
    if (here == NULL || (uintptr_t)here == UINTPTR_MAX) {
        return false;
    }
    window_here = here + (int64_t)(window - function);
    known = known || read_window() == UINT64_MAX;
    return known;
}

static bool counts(uint64_t address)
{
    return address < skip || address >= until;
}

/* Note which lines of flash a block's instructions come from, and watch what they read. */
static void watch_flash(struct qemu_plugin_tb *tb, struct block *block)
{
    const size_t instructions = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; block != NULL && flash_count != 0 && i < instructions; ++i) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
        if (counts(qemu_plugin_insn_vaddr(insn))) {
            add_fetch(block, qemu_plugin_insn_vaddr(insn));
            qemu_plugin_register_vcpu_mem_cb(insn, access_data, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
        }
    }
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    const size_t instructions = qemu_plugin_tb_n_insns(tb);
    uint64_t first = 0, counting = 0;
    (void)id;
    for (size_t i = 0; i < instructions; ++i) {
        struct qemu_plugin_insn *const insn = qemu_plugin_tb_get_insn(tb, i);
        const uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (counts(address)) {
            count(insn);
            first = counting++ == 0 ? address : first;
        }
        if (address == function && find_window(insn)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, tell, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
    }
    if (counting != 0 && marks != 0) {
        watch_flash(tb, follow(tb, first, counting));
    }
}

static bool take_option(const char *option)
{
    static const struct {
        const char *name;
        uint64_t *value;
    } options[] = {
        {"function=", &function}, {"window=", &window}, {"skip=", &skip}, {"until=", &until}, {"marks=", &marks}};
    if (strncmp(option, "blocks=", 7) == 0) {
        blocks_file = fopen(option + 7, "w");
        return blocks_file != NULL;
    }
    if (strncmp(option, "flash=", 6) == 0) {
        return flash_take(option + 6);
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; ++i) {
        const size_t length = strlen(options[i].name);
        if (strncmp(option, options[i].name, length) == 0) {
            char *end;
            *options[i].value = strtoull(option + length, &end, 0);
            return end != option + length && *end == '\0';
        }
    }
    return false;
}

int qemu_plugin_version = UACCEL_QEMU_PLUGIN_API;

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; ++i) {
        if (!take_option(argv[i])) {
            fprintf(stderr, "count: unknown or bad option %s; wanted function, window, skip, until, marks, flash and a "
                            "file for blocks\n", argv[i]);
            return 1;
        }
    }
    marks = blocks_file == NULL ? 0 : marks;
    if (!make_counter()) {
        fprintf(stderr, "count: QEMU gives no counter\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return 0;
}
