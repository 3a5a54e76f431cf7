// A venue by jspurefix. Arguments: port, version, behaviour (fill or open), the order after which it breaks the
// connection off (0: none). It prints a line of JSON for each order, fill and cancel, as `fix_engines` reads them.
import 'reflect-metadata'
import jspurefix from 'jspurefix'

const { AsciiSession, SessionLauncher, EmptyLogFactory, MsgType } = jspurefix
const [port, version, behaviour, breakAt] = [Number(process.argv[2]), process.argv[3], process.argv[4], Number(process.argv[5])]

const description = {
  application: {
    type: 'acceptor',
    name: 'acceptor',
    tcp: { host: '127.0.0.1', port },
    protocol: 'ascii',
    dictionary: version === 'FIX.4.4' ? 'data/FIX44.xml' : 'data/FIX50SP2.xml'
  },
  EncryptMethod: 0,
  ResetSeqNumFlag: false,
  HeartBtInt: 30,
  SenderCompId: 'PEER',
  TargetCompID: 'HTFI',
  BeginString: version === 'FIX.4.4' ? 'FIX.4.4' : 'FIXT.1.1',
  ...(version === 'FIX.4.4' ? {} : { Logon: { DefaultApplVerID: '9' } })
}

const orders = new Map() // by ClOrdID, over all connections
let reports = 0
const say = what => console.log(JSON.stringify(what))

class Venue extends AsciiSession {
  constructor (config) {
    super(config)
    this.logReceivedMsgs = false
  }

  onReady () {}

  report (order, status, more) {
    reports += 1
    const id = `E${reports}`
    this.send(MsgType.ExecutionReport, {
      OrderID: `V${order.id}`, ClOrdID: order.id, ExecID: id, OrdStatus: status, Instrument: { Symbol: order.symbol },
      Side: order.side, OrderQtyData: { OrderQty: order.quantity }, LeavesQty: order.quantity - order.filled,
      CumQty: order.filled, AvgPx: order.filled ? order.price : 0, TransactTime: new Date(), ...more
    })
    return id
  }

  fill (order, lots) {
    order.filled += lots
    const isWhole = order.filled === order.quantity
    const id = this.report(order, isWhole ? '2' : '1', { ExecType: 'F', LastQty: lots, LastPx: order.price })
    say({ fill: id, order: order.id, lots, price: order.price, symbol: order.symbol, side: order.side })
  }

  onApplicationMsg (type, view) {
    const id = view.getString('ClOrdID')
    if (type === MsgType.NewOrderSingle) {
      const order = {
        id, symbol: view.getString('Symbol'), side: view.getString('Side'), filled: 0, isOpen: true,
        quantity: Number(view.getString('OrderQty')), price: Number(view.getString('Price'))
      }
      orders.set(id, order)
      say({ order: id })
      if (behaviour === 'open' && orders.size === breakAt) { this.transport.end(); return }
      this.report(order, '0', { ExecType: '0' })
      if (behaviour === 'fill') {
        const half = Math.floor(order.quantity / 2)
        if (half) this.fill(order, half)
        this.fill(order, order.quantity - half)
        order.isOpen = false
        if (orders.size === breakAt) this.transport.end()
      }
    } else if (type === MsgType.OrderCancelRequest) {
      const order = orders.get(view.getString('OrigClOrdID'))
      if (order && order.isOpen) {
        order.isOpen = false
        say({ cancel: order.id })
        this.report(order, '4', { ExecType: '4', ClOrdID: id, OrigClOrdID: order.id, LeavesQty: 0 })
      } else {
        this.send(MsgType.OrderCancelReject, {
          OrderID: 'NONE', ClOrdID: id, OrigClOrdID: view.getString('OrigClOrdID'), OrdStatus: order ? '2' : '8',
          CxlRejResponseTo: '1', CxlRejReason: order ? 0 : 1
        })
      }
    } else {
      say({ problem: `${type}: ${view.getString(58)}` })
    }
  }

  onDecoded () {}
  onEncoded () {}
  onLogon () { return true }
  onStopped () {}
}

class Launcher extends SessionLauncher {
  makeFactory () { return { makeSession: config => new Venue(config) } }
}

process.on('uncaughtException', error => say({ problem: String(error) }))
new Launcher(null, description, new EmptyLogFactory()).run().catch(error => { say({ problem: String(error) }) })
