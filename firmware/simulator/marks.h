/* What the core executed and waited for between two readings of the counter, as text: the blocks are written as those of
 * the plugin for QEMU (ports/qemu_plugin/count.c), and behind each mark's count stand cycles and what was waited for. */
#ifndef UACCEL_SIMULATOR_MARKS_H
#define UACCEL_SIMULATOR_MARKS_H

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace uaccel {

class Marks {
public:
    uint64_t count = 0;
    uint64_t waited_for_code = 0, waited_for_data = 0, waited_for_devices = 0;

    /* Code from `begin` up to `end` measures or serves interrupts, and does not count. */
    void leave_out(uint32_t begin, uint32_t end)
    {
        begin_ = begin;
        end_ = end;
    }

    void write_to(const std::string &path, int most)
    {
        file_ = fopen(path.c_str(), "w");
        most_ = file_ != nullptr ? most : 0;
    }

    /* An instruction has retired. */
    void retired(uint32_t pc, uint32_t instruction)
    {
        if (pc >= begin_ && pc < end_) {
            finish();
            before_ = 0;
            return;
        }
        count++;
        if (most_ == 0) {
            return;
        }
        if (length_ != 0 && pc != start_ + 4 * length_) {
            finish();
        }
        if (length_ == 0) {
            start_ = pc;
        }
        length_++;
        const uint32_t kind = instruction & 0x7Fu;
        if (kind == 0x63 || kind == 0x67 || kind == 0x6F) { /* branch, jalr, jal */
            finish();
        }
    }

    /* The counter is read. */
    void mark(uint64_t cycles)
    {
        if (most_ == 0) {
            return;
        }
        finish();
        const unsigned long long told[] = {count, cycles, waited_for_code, waited_for_data, waited_for_devices};
        fprintf(file_, "mark %llu %llu %llu %llu %llu\n", told[0], told[1], told[2], told[3], told[4]);
        for (const auto &row : executed_) {
            const Block &block = blocks_[row.first];
            fprintf(file_, "%u %x %u %llu", row.first, block.start, block.length, (unsigned long long)row.second.times);
            for (const auto &edge : row.second.before) {
                fprintf(file_, " %u %llu", edge.first, (unsigned long long)edge.second);
            }
            fputc('\n', file_);
        }
        fflush(file_);
        executed_.clear();
        before_ = 0;
        most_--;
    }

private:
    struct Block {
        uint32_t start, length;
    };
    struct Executed {
        uint64_t times = 0;
        std::unordered_map<uint32_t, uint64_t> before;
    };

    void finish()
    {
        if (length_ == 0) {
            return;
        }
        const uint64_t key = uint64_t{start_} << 32 | length_;
        const auto found = numbers_.emplace(key, static_cast<uint32_t>(blocks_.size()));
        if (found.second) {
            blocks_.push_back({start_, length_});
        }
        Executed &row = executed_[found.first->second];
        row.times++;
        if (before_ != 0) {
            row.before[before_ - 1]++;
        }
        before_ = found.first->second + 1;
        length_ = 0;
    }

    FILE *file_ = nullptr;
    int most_ = 0;
    uint32_t begin_ = 0, end_ = 0;
    uint32_t start_ = 0, length_ = 0; /* of the block under way */
    uint32_t before_ = 0;             /* the number of the block before it, and one; 0: none */
    std::vector<Block> blocks_;
    std::unordered_map<uint64_t, uint32_t> numbers_;
    std::map<uint32_t, Executed> executed_;
};

} // namespace uaccel

#endif
