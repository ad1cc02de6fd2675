/*
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What an init process must do before anything else can run: file systems,
 * drivers in the order of /modules/order, addresses from the command line
 * (lab.net=eth0,ADDRESS/PREFIX[,ADDRESS/PREFIX]...).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest.h"

void mount_filesystems(void)
{
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/dev", 0755);
    mount("proc", "/proc", "proc", 0, 0);
    mount("sysfs", "/sys", "sysfs", 0, 0);
    mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
    if (!freopen("/dev/console", "w", stdout))
        return;
    setvbuf(stdout, 0, _IOLBF, 0);
}

void load_modules(void)
{
    char name[128], path[160];
    FILE *order = fopen("/modules/order", "r");

    if (!order)
        return;
    while (fscanf(order, "%127s", name) == 1) {
        int file;

        snprintf(path, sizeof(path), "/modules/%s", name);
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || syscall(SYS_finit_module, file, "", 0))
            printf("module %s: %m\n", name);
        if (file >= 0)
            close(file);
        unlink(path);
    }
    fclose(order);
}

static void write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, text, strlen(text)) < 0)
        printf("%s: %m\n", path);
    if (file >= 0)
        close(file);
}

/* Without these the guest sends packets that nobody asked it to send. */
static void silence(const char *device)
{
    static const char *const names[] = {
        "accept_ra", "dad_transmits", "router_solicitations", "autoconf",
    };
    char path[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", device,
                 names[i]);
        write_text(path, "0");
    }
}

static void bring_up(const char *device)
{
    struct ifreq request = {0};
    int control = socket(AF_INET, SOCK_DGRAM, 0);

    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(control, SIOCSIFFLAGS, &request))
        printf("%s up: %m\n", device);
    close(control);
}

static int add_four(const char *device, const char *address, int prefix)
{
    struct ifreq request = {0};
    struct sockaddr_in *field = (struct sockaddr_in *)&request.ifr_addr;
    int control = socket(AF_INET, SOCK_DGRAM, 0), result;

    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    field->sin_family = AF_INET;
    inet_pton(AF_INET, address, &field->sin_addr);
    result = ioctl(control, SIOCSIFADDR, &request);
    field->sin_addr.s_addr =
        htonl(prefix ? 0xffffffffu << (32 - prefix) : 0);
    if (!result)
        result = ioctl(control, SIOCSIFNETMASK, &request);
    close(control);
    return result;
}

static int add_six(const char *device, const char *address, int prefix)
{
    struct in6_ifreq request = {0};
    int control = socket(AF_INET6, SOCK_DGRAM, 0), result;

    inet_pton(AF_INET6, address, &request.ifr6_addr);
    request.ifr6_prefixlen = (unsigned)prefix;
    request.ifr6_ifindex = (int)if_nametoindex(device);
    result = ioctl(control, SIOCSIFADDR, &request);
    close(control);
    return result;
}

static void configure(char *setting)
{
    char *rest = 0, *device = strtok_r(setting, ",", &rest), *address;

    silence(device);
    bring_up(device);
    while ((address = strtok_r(0, ",", &rest))) {
        char *slash = strchr(address, '/');
        int prefix = slash ? atoi(slash + 1) : 0;

        if (slash)
            *slash = 0;
        if (strchr(address, ':') ? add_six(device, address, prefix)
                                 : add_four(device, address, prefix))
            printf("address %s on %s: %m\n", address, device);
    }
}

void configure_network(void)
{
    static char line[4096];
    char *rest = 0, *word;
    FILE *file = fopen("/proc/cmdline", "r");

    if (!file)
        return;
    if (!fgets(line, sizeof(line), file))
        line[0] = 0;
    fclose(file);
    bring_up("lo");
    for (word = strtok_r(line, " \n", &rest); word;
         word = strtok_r(0, " \n", &rest))
        if (!strncmp(word, "lab.net=", 8))
            configure(word + 8);
}
