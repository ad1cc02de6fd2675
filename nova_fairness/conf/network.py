# SPDX-License-Identifier: Apache-2.0

"""Options of the network control: ``[fairness_network]``."""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'fairness_network',
    title='Network of a node',
    help='Place and method of dividing the traffic of VMs.',
)

OPTS = [
    cfg.StrOpt(
        'layout',
        default='auto',
        choices=[
            ('auto', '``uplink`` or ``tap``, depending on the host'),
            ('uplink', 'at the physical port of the bridge of the VMs'),
            ('tap', 'at the tap of each VM'),
            ('off', 'traffic of VMs is measured, but not divided'),
        ],
        advanced=True,
        help="""
Place at which the traffic of VMs is divided. ``uplink`` divides all traffic
that leaves or reaches the node, including the host's own, but not traffic
between VMs of the node. ``tap`` works before tunnels and with Open vSwitch. It
does not include the host's own traffic, but includes traffic between VMs of
the node. ``auto`` means ``uplink`` if the Linux bridges together have exactly
one physical port, and ``tap`` otherwise. Set it if ``auto`` chooses wrongly on
this host. ``tap`` together with the option ``uplink`` divides sent traffic at
the uplink and received traffic at the taps; use it for Open vSwitch's datapath
in user space without tunnels. A queueing discipline of another program is
never replaced.
""",
    ),
    cfg.StrOpt(
        'uplink',
        default='',
        help="""
Interface through which VMs reach the network, such as ``eth1`` or ``bond0``.
Its link speed is the bandwidth of the node, unless ``[fairness_node]
network_bandwidth`` is set. Empty: the physical port of the bridge; the
bandwidth is then the link speed of the interface of the default route. Set it
if bridges have several ports, or if the port is not physical. Together with
``layout = auto`` it selects the layout ``uplink``; with ``layout = tap``
traffic that VMs send is divided at this interface.
""",
    ),
    cfg.FloatOpt(
        'host_rate',
        min=0.0,
        advanced=True,
        help="""
Bytes per second, in each direction, that are guaranteed to the host's own
traffic: storage, migrations, management. The value is limited to half of the
link. VMs may use the part that the host does not use. Not set: 5 percent of
the link. Raise it if migrations or storage are slow while VMs are busy. With
``layout = tap`` the host's own traffic is not measured. Then VMs never use
this rate; if it is not set, nothing is reserved for the host.
""",
    ),
]
