/* As much of QEMU as the plugins in firmware/ports ask for (qemu_plugin/count.c, qemu_device/device.c): it loads the plugin and "executes" a small program.
 *
 * Usage: fake_qemu PLUGIN WINDOW OPTION...
 * The program is 16 instructions of 4 bytes from 0x1000 on, run three times; its memory holds WINDOW (hexadecimal) at
 * 0x1100. Instruction number N reads a word at 0x2000 + 4 N, and writes one at 0x3000 + 4 N. Printed are the interface
 * that the plugin was made for, and the window after each instruction at 0x1008. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASE = 0x1000, INSTRUCTIONS = 16, WINDOW = 0x1100, MARK = 0x1008, MOST = 4, READ = 0x2000, WRITTEN = 0x3000 };
enum { IS_LOAD, IS_STORE };

typedef void (*simple_cb)(uint64_t id, unsigned int cpu);
typedef void (*trans_cb)(uint64_t id, void *tb);
typedef void (*simple_end)(uint64_t id, void *data);
typedef void (*exec_cb)(unsigned int cpu, void *data);
typedef void (*mem_cb)(unsigned int cpu, uint32_t info, uint64_t address, void *data);

/* Actions in the order of their registration, as QEMU executes them. */
struct insn {
    uint64_t address;
    int actions;
    mem_cb access;
    struct {
        exec_cb callback;
        void *data;
        uint64_t *counter;
        uint64_t add;
    } action[MOST];
};

struct scoreboard {
    uint64_t values[2]; /* one for each of two CPUs; the second is the one that runs */
};

typedef struct {
    struct scoreboard *score;
    size_t offset;
} u64;

static struct insn program[INSTRUCTIONS];
static struct insn block; /* what is to be done before all of them */
static uint8_t memory[0x200];
static simple_cb begin;
static trans_cb translate;
static simple_end end;
static void *end_data;

void qemu_plugin_register_atexit_cb(uint64_t id, simple_end cb, void *data);
void qemu_plugin_register_vcpu_init_cb(uint64_t id, simple_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, trans_cb cb);
size_t qemu_plugin_tb_n_insns(const void *tb);
struct insn *qemu_plugin_tb_get_insn(const void *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct insn *insn);
void *qemu_plugin_insn_haddr(const struct insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn, exec_cb cb, int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(void *tb, exec_cb cb, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct insn *insn, mem_cb cb, int flags, int accesses, void *data);
bool qemu_plugin_mem_is_store(uint32_t info);
void qemu_plugin_register_vcpu_insn_exec_inline(struct insn *insn, int op, void *counter, uint64_t add);
struct scoreboard *qemu_plugin_scoreboard_new(size_t size);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct insn *insn, int op, u64 entry, uint64_t add);
uint64_t qemu_plugin_u64_get(u64 entry, unsigned int cpu);

void qemu_plugin_register_atexit_cb(uint64_t id, simple_end cb, void *data)
{
    (void)id;
    end = cb;
    end_data = data;
}

void qemu_plugin_register_vcpu_init_cb(uint64_t id, simple_cb cb)
{
    (void)id;
    begin = cb;
}

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, trans_cb cb)
{
    (void)id;
    translate = cb;
}

size_t qemu_plugin_tb_n_insns(const void *tb)
{
    (void)tb;
    return INSTRUCTIONS;
}

struct insn *qemu_plugin_tb_get_insn(const void *tb, size_t index)
{
    (void)tb;
    return &program[index];
}

uint64_t qemu_plugin_insn_vaddr(const struct insn *insn)
{
    return insn->address;
}

void *qemu_plugin_insn_haddr(const struct insn *insn)
{
    return memory + (insn->address - BASE);
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn, exec_cb cb, int flags, void *data)
{
    (void)flags;
    insn->action[insn->actions].callback = cb;
    insn->action[insn->actions].data = data;
    insn->actions++;
}

void qemu_plugin_register_vcpu_tb_exec_cb(void *tb, exec_cb cb, int flags, void *data)
{
    (void)tb;
    qemu_plugin_register_vcpu_insn_exec_cb(&block, cb, flags, data);
}

void qemu_plugin_register_vcpu_mem_cb(struct insn *insn, mem_cb cb, int flags, int accesses, void *data)
{
    (void)flags;
    (void)accesses;
    (void)data;
    insn->access = cb;
}

bool qemu_plugin_mem_is_store(uint32_t info)
{
    return info == IS_STORE;
}

static void add_inline(struct insn *insn, uint64_t *counter, uint64_t add)
{
    insn->action[insn->actions].counter = counter;
    insn->action[insn->actions].add = add;
    insn->actions++;
}

void qemu_plugin_register_vcpu_insn_exec_inline(struct insn *insn, int op, void *counter, uint64_t add)
{
    (void)op;
    add_inline(insn, counter, add);
}

struct scoreboard *qemu_plugin_scoreboard_new(size_t size)
{
    return size == sizeof(uint64_t) ? calloc(1, sizeof(struct scoreboard)) : NULL;
}

void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct insn *insn, int op, u64 entry, uint64_t add)
{
    (void)op;
    add_inline(insn, &entry.score->values[1] + entry.offset, add);
}

uint64_t qemu_plugin_u64_get(u64 entry, unsigned int cpu)
{
    return entry.score->values[cpu];
}

static void execute(struct insn *insn)
{
    for (int i = 0; i < insn->actions; ++i) {
        if (insn->action[i].callback != NULL) {
            insn->action[i].callback(1, insn->action[i].data);
        } else {
            *insn->action[i].counter += insn->action[i].add;
        }
    }
    if (insn->access != NULL) {
        insn->access(1, IS_LOAD, READ + (insn->address - BASE), NULL);
        insn->access(1, IS_STORE, WRITTEN + (insn->address - BASE), NULL);
    }
}

static void *symbol(void *plugin, const char *name)
{
    void *found = dlsym(plugin, name);
    if (found == NULL) {
        fprintf(stderr, "the plugin lacks %s\n", name);
        exit(1);
    }
    return found;
}

int main(int argc, char **argv)
{
    int (*install)(uint64_t id, const void *info, int argc, char **argv);
    void *const plugin = argc < 3 ? NULL : dlopen(argv[1], RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "cannot load the plugin: %s\n", dlerror());
        return 1;
    }
    void *const entry = symbol(plugin, "qemu_plugin_install");
    memcpy(&install, &entry, sizeof install);
    printf("%d\n", *(int *)symbol(plugin, "qemu_plugin_version"));
    if (install(7, NULL, argc - 3, argv + 3) != 0) {
        return 2;
    }
    const uint64_t window = strtoull(argv[2], NULL, 16);
    memcpy(memory + (WINDOW - BASE), &window, sizeof window);
    for (int i = 0; i < INSTRUCTIONS; ++i) {
        program[i].address = (uint64_t)BASE + 4u * (uint64_t)i;
    }
    if (begin != NULL) {
        begin(7, 0);
    }
    translate(7, NULL);
    for (int run = 0; run < 3; ++run) {
        execute(&block);
        for (int i = 0; i < INSTRUCTIONS; ++i) {
            uint64_t value;
            execute(&program[i]);
            memcpy(&value, memory + (WINDOW - BASE), sizeof value);
            if (program[i].address == MARK) {
                printf("%" PRIx64 "\n", value);
            }
        }
    }
    if (end != NULL) {
        end(7, end_data);
    }
    return 0;
}
