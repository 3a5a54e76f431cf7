// One side of a FIX session by jspurefix. Arguments: role, port, number of orders, version.
// It sends its orders, answers those that come with a report, and prints what it has seen once both are complete.
import 'reflect-metadata'
import jspurefix from 'jspurefix'

const { AsciiSession, SessionLauncher, EmptyLogFactory, MsgType } = jspurefix
const [role, port, count, version] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4]), process.argv[5]]
const isInitiator = role === 'initiator'

const description = {
  application: {
    type: role,
    name: role,
    tcp: { host: '127.0.0.1', port },
    protocol: 'ascii',
    dictionary: version === 'FIX.4.4' ? 'data/FIX44.xml' : 'data/FIX50SP2.xml'
  },
  EncryptMethod: 0,
  ResetSeqNumFlag: isInitiator,
  HeartBtInt: 30,
  SenderCompId: 'PEER',
  TargetCompID: 'HTFI',
  BeginString: version === 'FIX.4.4' ? 'FIX.4.4' : 'FIXT.1.1',
  ...(version === 'FIX.4.4' ? {} : { Logon: { DefaultApplVerID: '9' } })
}

class Counterparty extends AsciiSession {
  constructor (config) {
    super(config)
    this.logReceivedMsgs = false
    this.seen = { orders: [], reports: [], problems: [] }
    this.began = 0
    this.times = []
  }

  onReady () {
    this.began = performance.now()
    for (let n = 0; n < count; ++n) this.send(MsgType.NewOrderSingle, this.order(`P${n}`))
  }

  order (id) {
    return {
      ClOrdID: id, Instrument: { Symbol: 'IBM' }, Side: '1', TransactTime: new Date(),
      OrderQtyData: { OrderQty: 100 }, OrdType: '2', Price: 101.25
    }
  }

  onApplicationMsg (type, view) {
    if (type === MsgType.NewOrderSingle) {
      const id = view.getString('ClOrdID')
      this.seen.orders.push(id)
      this.send(MsgType.ExecutionReport, {
        OrderID: `V${id}`, ClOrdID: id, ExecID: `E${id}`, ExecType: '0', OrdStatus: '0', Instrument: { Symbol: 'IBM' },
        Side: '1', LeavesQty: 100, CumQty: 0, AvgPx: 0, TransactTime: new Date()
      })
    } else if (type === MsgType.ExecutionReport) {
      this.seen.reports.push(view.getString('ClOrdID'))
    } else {
      this.seen.problems.push(`${type}: ${view.getString(58)}`)
    }
    if (this.seen.orders.length === count && this.seen.reports.length === count) {
      setTimeout(() => this.report(), 20)
    }
  }

  report () {
    console.log(JSON.stringify({ ...this.seen, ms: performance.now() - this.began }))
    if (isInitiator) this.done()
  }

  onDecoded () {}
  onEncoded () {}
  onLogon () { return true }
  onStopped (error) {
    if (error) console.error(String(error))
    setTimeout(() => process.exit(0), 50)
  }
}

class Launcher extends SessionLauncher {
  makeFactory () { return { makeSession: config => new Counterparty(config) } }
}

const launcher = new Launcher(isInitiator ? description : null, isInitiator ? null : description, new EmptyLogFactory())
launcher.run().catch(error => { console.error(String(error)); process.exit(1) })
