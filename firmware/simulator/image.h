/* The loadable parts of an ELF file of 32 bits, little endian. */
#ifndef UACCEL_SIMULATOR_IMAGE_H
#define UACCEL_SIMULATOR_IMAGE_H

#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace uaccel {

[[noreturn]] inline void stop(const std::string &words)
{
    fprintf(stderr, "%s\n", words.c_str());
    std::exit(3);
}

struct Part {
    uint32_t address; /* where it lies before start-up code has copied anything */
    std::vector<uint8_t> bytes;
};

inline std::vector<Part> read_elf(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    const std::vector<uint8_t> all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    Elf32_Ehdr header;
    if (all.size() < sizeof header || memcmp(all.data(), ELFMAG, SELFMAG) != 0) {
        stop(path + " is no ELF file");
    }
    memcpy(&header, all.data(), sizeof header);
    std::vector<Part> parts;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf32_Phdr part;
        const size_t at = header.e_phoff + size_t{i} * header.e_phentsize;
        if (at + sizeof part > all.size()) {
            stop(path + " is cut short");
        }
        memcpy(&part, all.data() + at, sizeof part);
        if (part.p_type != PT_LOAD || part.p_filesz == 0) {
            continue;
        }
        if (size_t{part.p_offset} + part.p_filesz > all.size()) {
            stop(path + " is cut short");
        }
        const uint8_t *const begin = all.data() + part.p_offset;
        parts.push_back({part.p_paddr, std::vector<uint8_t>(begin, begin + part.p_filesz)});
    }
    return parts;
}

} // namespace uaccel

#endif
