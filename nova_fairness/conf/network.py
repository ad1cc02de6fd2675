# SPDX-License-Identifier: Apache-2.0

"""Options of how the network is divided: ``[fairness_network]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_network',
    title='Network of a node',
    help='Where and how what VMs send and receive is divided.',
)

OPTS = [
    cfg.StrOpt(
        'layout',
        default='auto',
        choices=[
            ('auto', 'what fits the host'),
            ('uplink', 'at the physical port of the bridge of the VMs'),
            ('tap', 'at the tap of each VM'),
            ('off', 'VMs are measured, and not steered'),
        ],
        help="""
Where VMs are steered. ``uplink`` sees all traffic of the node, so the host's
own has its part, and leaves traffic between VMs of the node alone. ``tap``
works before tunnels and with Open vSwitch, does not see the host's own
traffic, and counts traffic between VMs of the node too. ``auto`` takes
``uplink`` where Linux bridges have exactly one physical port together, and
``tap`` otherwise. ``tap`` together with an ``uplink`` divides what VMs send at
the uplink and what they receive at their taps, for Open vSwitch's datapath in
user space without tunnels. Whatever it is, a queueing discipline that
somebody else made is never replaced.
""",
    ),
    cfg.StrOpt(
        'uplink',
        default='',
        help="""
Interface through which VMs reach the network, such as ``eth1`` or ``bond0``.
Empty: the physical port of the bridge. Set it where bridges have several, or
where the port is not physical. With ``layout = auto`` it chooses ``uplink``;
with ``layout = tap`` what VMs send is divided there.
""",
    ),
    cfg.FloatOpt(
        'link_part',
        default=0.98,
        min=0.1,
        max=1.0,
        help="""
Part of ``[fairness_node] network_bandwidth`` that is divided. What is left
keeps queues in the host, where they can be divided, and not in the switch.
No unit.
""",
    ),
    cfg.FloatOpt(
        'host_rate',
        min=0.0,
        help="""
Bytes per second, in each direction, that the host's own traffic gets in any
case: storage, migrations, management. What it does not use, VMs use. Not set:
5 percent of the link. With ``layout = tap`` the host's traffic is not seen, so
there what is set is kept free for it, and nothing is if it is not set. At most
half of the link.
""",
    ),
]
